//! What a power cut may take from a stack: how much its model loses, and the part of the stack that decides
//! it.
//!
//! A database is safe while FLUSH is honest: it then loses at most what it has not flushed, with a volatile
//! cache as without one.

use std::borrow::Cow;

use serde::Serialize;
use spindle_model::{
    CacheParameters, CachePolicy, ClosedLoop, Device as _, Driver as _, FaultParameters, Layer, Order,
    Parameters, PowerCut, StackSpec as Tree, VirtualTime, WriteCache,
};

use crate::report::format::size;
use crate::stack::StackSpec;

const SEED: u64 = 1;
/// Each is a write and a FLUSH, so that the last request is a FLUSH.
const COMMITS: u64 = 500;
const COMMIT_BYTES: u64 = 4 << 10;
/// Size of a layered stack of flash drives.
const USED_BYTES: u64 = 1 << 30;

/// What a power cut may take of the writes that were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Upper bound of the writes that no FLUSH covers.
    pub volatile_bytes: u64,
    /// Whether writes are lost that a FLUSH covers.
    pub flush_lies: bool,
}

impl Loss {
    /// `cut` is the power cut of the stack's device behind a FLUSH.
    pub fn after_flush(stack: &StackSpec, cut: &PowerCut) -> Loss {
        Loss {
            volatile_bytes: stack.tree().volatile_bytes(),
            flush_lies: cut.writes.iter().any(|write| write.acknowledged),
        }
    }

    pub fn words(self) -> String {
        match self {
            Loss { flush_lies: true, .. } => "also flushed writes".to_owned(),
            Loss { volatile_bytes: 0, .. } => "nothing".to_owned(),
            _ => format!("up to {} unflushed", size(self.volatile_bytes)),
        }
    }
}

/// The classes, from the safest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// An acknowledged write is never lost.
    Nothing,
    /// FLUSH is honest, and writes that it does not cover may be lost.
    Unflushed,
    /// FLUSH does not make writes durable.
    Flushed,
}

impl Class {
    pub fn words(self) -> &'static str {
        match self {
            Class::Nothing => "nothing",
            Class::Unflushed => "nothing that was flushed",
            Class::Flushed => "also what was flushed",
        }
    }
}

/// What a power cut may take from a stack, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Safety {
    pub class: Class,
    pub loss: Loss,
    /// Phrases about the parts that decide it, each once, the upper ones first.
    pub reasons: Vec<&'static str>,
}

/// The safety of an emulated stack; `None` for a real disk or a pool, which have no model.
pub fn safety(stack: &StackSpec) -> Option<Safety> {
    if stack.real().is_some() || stack.pool().is_some() || stack.size_bytes() < COMMIT_BYTES {
        return None;
    }
    let mut told = Told::default();
    told.add(stack.tree());
    let loss = loss(&handy(stack));
    let class = match loss {
        _ if told.lies || loss.flush_lies => Class::Flushed,
        Loss { volatile_bytes: 0, .. } => Class::Nothing,
        _ => Class::Unflushed,
    };
    Some(Safety { class, loss, reasons: told.reasons })
}

/// The loss of the model behind the last of some commits.
fn loss(stack: &StackSpec) -> Loss {
    let mut driver = VirtualTime::new(stack.build(SEED));
    let commits = ClosedLoop {
        read_percent: 0,
        size_bytes: COMMIT_BYTES,
        order: Order::Sequential,
        span_bytes: stack.size_bytes(),
        flush_after_write: true,
        request_count: 2 * COMMITS,
        ..ClosedLoop::default()
    };
    commits.run(&mut driver);
    let now = driver.now();
    Loss::after_flush(stack, &driver.device_mut().power_cut(now))
}

/// The stack, or a small one that behaves the same: a used flash drive is filled when it is built, and that
/// takes as long as the drive is large.
pub fn handy(stack: &StackSpec) -> Cow<'_, StackSpec> {
    let is_other = |parameters: &Parameters| !matches!(parameters, Parameters::Flash(_));
    let is_small = stack.size_bytes() <= USED_BYTES;
    let has_layers = !stack.tree().branches().is_empty();
    match stack.with_size(USED_BYTES) {
        Ok(small) if has_layers && !is_small && !stack.tree().any_device(&is_other) => Cow::Owned(small),
        _ => Cow::Borrowed(stack),
    }
}

#[derive(Debug, Default)]
struct Told {
    reasons: Vec<&'static str>,
    /// A part acknowledges a FLUSH that it does not carry out, now or later.
    lies: bool,
}

impl Told {
    fn add(&mut self, tree: &Tree) {
        let (reason, lies) = match tree {
            Tree::Device(parameters) => (of_device(parameters), false),
            Tree::Layer(Layer::Fault(FaultParameters { lying_flush_ns: Some(_), .. }), _) => {
                ("it lies about FLUSH", true)
            }
            Tree::Layer(Layer::Cache(cache), _) => of_controller(cache),
            Tree::Layer(_, below) => {
                below.iter().for_each(|branch| self.add(&branch.stack));
                return;
            }
        };
        self.lies |= lies;
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

fn of_device(parameters: &Parameters) -> &'static str {
    match (parameters, parameters.write_cache()) {
        (Parameters::Volume(_), _) => "the volume makes a write durable before it completes",
        (_, WriteCache::Off) => "the drive writes through its cache",
        (_, WriteCache::Volatile) => "the drive's write cache is volatile, and FLUSH empties it",
        (_, WriteCache::Protected) => "capacitors keep the drive's write cache",
    }
}

/// The reason, and whether it lies. What is below is the controller's own concern.
fn of_controller(cache: &CacheParameters) -> (&'static str, bool) {
    match (cache.policy, cache.battery_out_at_ns) {
        (CachePolicy::WriteThrough, _) => ("the controller writes through", false),
        (_, None) => ("a battery keeps the controller's memory", false),
        (CachePolicy::WriteBack, Some(_)) => {
            ("a battery keeps the controller's memory, without it the controller writes through", false)
        }
        (CachePolicy::WriteBackAlways, Some(_)) => ("the controller writes back without a battery", true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackFile;

    #[track_caller]
    fn check(stack: &StackSpec, class: Class, reasons: &[&str]) {
        let safety = safety(stack).unwrap();
        assert_eq!((safety.class, &safety.reasons[..]), (class, reasons));
    }

    fn built_in(name: &str) -> StackSpec {
        StackSpec::of_name(name, Some("1 GiB"), "xfs").unwrap()
    }

    fn on(name: &str, keys: &str) -> StackSpec {
        let text = format!("[stacks.a]\non = \"{name}\"\nsize = \"1 GiB\"\n{keys}\n");
        StackFile::parse("s.toml", &text).unwrap().resolve("s.toml", "a").unwrap()
    }

    #[test]
    fn an_honest_flush_keeps_what_it_covers() {
        let volatile = "the drive's write cache is volatile, and FLUSH empties it";
        check(&built_in("870evo"), Class::Unflushed, &[volatile]);
        check(&built_in("raid5-4x-x25e"), Class::Unflushed, &[volatile]);
    }

    #[test]
    fn capacitors_and_write_through_lose_nothing() {
        check(&built_in("pm9a3"), Class::Nothing, &["capacitors keep the drive's write cache"]);
        check(&built_in("cheetah-15k7"), Class::Nothing, &["the drive writes through its cache"]);
        let durable = "the volume makes a write durable before it completes";
        check(&built_in("ebs-gp3"), Class::Nothing, &[durable]);
    }

    #[test]
    fn a_controller_is_as_safe_as_its_battery() {
        let kept = "a battery keeps the controller's memory";
        check(&built_in("raid10-4x15k-wb"), Class::Nothing, &[kept]);
        let cache = |policy: &str| {
            format!("layer = \"cache\"\ncache = \"64 MiB\"\npolicy = \"{policy}\"\nbattery_out_at = \"10 h\"")
        };
        let through = "a battery keeps the controller's memory, without it the controller writes through";
        check(&on("cheetah-15k7", &cache("write-back")), Class::Nothing, &[through]);
        let always = on("cheetah-15k7", &cache("write-back-always"));
        check(&always, Class::Flushed, &["the controller writes back without a battery"]);
    }

    #[test]
    fn a_flush_that_lies_loses_what_it_promised() {
        let liar = on("x25m-80", "layer = \"fault\"\nlying_flush = \"1 us\"");
        check(&liar, Class::Flushed, &["it lies about FLUSH"]);
        assert_eq!(safety(&liar).unwrap().loss.words(), "also flushed writes");
        assert_eq!(Class::Flushed.words(), "also what was flushed");
    }

    #[test]
    fn the_safest_class_comes_first() {
        assert!(Class::Nothing < Class::Unflushed && Class::Unflushed < Class::Flushed);
    }
}
