//! What a layer says of itself beside its parameters: its name, what it is on, how large it is, and what is
//! built of it.

use crate::device::Device;
use crate::parameter::{Declared, Field, Invalid, Kind};

/// A stack that a layer is on, by the key of stack tables that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    pub key: &'static str,
    /// The key of its size, where it does not follow from the layer's.
    pub size_key: Option<&'static str>,
    /// What to tell who left it out; `None`: then it is another of the same as the first.
    pub hint: Option<&'static str>,
}

impl Below {
    pub const ON: Below = Below { key: "on", size_key: None, hint: Some("which stack is the layer on?") };

    /// The keys of stack tables that name it and give its size.
    fn fields(&self) -> Vec<Field> {
        let doc = match self.hint {
            Some(_) => "The name of a stack.",
            None => "The name of a stack; unless given, it is another of the same.",
        };
        let size = self.size_key.map(|key| {
            let doc = format!("Size of the stack that `{}` names, where its own table says none.", self.key);
            Field { may_be_absent: true, ..Field::new("", key, Kind::Size, &doc) }
        });
        let may_be_absent = self.hint.is_none();
        let name = Field { may_be_absent, ..Field::new("", self.key, Kind::Name, doc) };
        std::iter::once(name).chain(size).collect()
    }
}

/// What stack tables may say of a kind of layer.
#[derive(Debug, Clone)]
pub struct LayerKind {
    /// The usual name first.
    pub names: &'static [&'static str],
    /// Its parameters.
    pub fields: Vec<Field>,
    pub below: &'static [Below],
    pub is_array: bool,
}

impl LayerKind {
    /// How many copies of one stack an array is on.
    pub const MEMBERS: &'static str = "members";

    /// The keys that say what it is on, besides `on`.
    pub fn fields_below(&self) -> Vec<Field> {
        let members = Field {
            may_be_absent: true,
            ..Field::new("", LayerKind::MEMBERS, Kind::Count, "Copies of one stack, where `on` names one.")
        };
        let others = self.below.iter().skip(1).flat_map(Below::fields);
        self.is_array.then_some(members).into_iter().chain(others).collect()
    }
}

/// What is known of a stack below when its layer is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    pub size_bytes: u64,
    /// One sentence: what is emulated.
    pub summary: &'a str,
}

/// A kind of layer: its parameters, and what is made of them and of the stacks below. Their order is that of
/// [`LayerParameters::BELOW`].
pub trait LayerParameters: Declared {
    /// In stack tables; the first is the usual one, the others are as good.
    const NAMES: &'static [&'static str];
    const BELOW: &'static [Below] = &[Below::ON];
    /// Whether the one stack that it is on may be several, or copies of one.
    const IS_ARRAY: bool = false;

    /// # Errors
    /// A bound that relates several parameters.
    fn relations(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// Names the key, as a stack table spells it, and the bound.
    fn validate(&self) -> Result<(), Invalid> {
        self.check_bounds()?;
        self.relations()
    }

    /// What to tell whose table says so little that the layer does nothing.
    fn idle_hint(&self) -> Option<&'static str> {
        None
    }

    /// # Errors
    /// It cannot be on that many stacks.
    fn check_count(&self, _below_count: usize) -> Result<(), Invalid> {
        Ok(())
    }

    /// # Errors
    /// A parameter that does not fit the stacks below, of which these are the sizes.
    fn check_sizes(&self, _below_bytes: &[u64]) -> Result<(), Invalid> {
        Ok(())
    }

    /// The size that comes of the sizes below; the layer cannot be larger.
    fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
        below_bytes[0]
    }

    /// Whether it may be made smaller than that.
    fn may_be_smaller(&self) -> bool {
        false
    }

    /// What each stack below needs for a layer of that size.
    fn size_below_bytes(&self, size_bytes: u64, _below_count: usize) -> u64 {
        size_bytes
    }

    /// By how much the size may exceed the one that was asked for, because stacks below come in whole pieces.
    fn slack_bytes(&self, _below_count: usize) -> u64 {
        u64::MAX
    }

    /// Whether FLUSH means something to it; the argument says whether it does to a stack below.
    fn has_volatile_cache(&self, below_has: bool) -> bool {
        below_has
    }

    /// Whether the value of a parameter plays a part, as it stands with the others.
    fn uses(&self, _key: &str) -> bool {
        true
    }

    /// What the model takes for granted besides parameters, as sentences.
    fn assumptions(&self) -> &'static [&'static str] {
        &[]
    }

    /// One sentence: what is emulated.
    fn summary(&self, below: &[Told<'_>]) -> String;

    /// A running device; parameters and sizes are valid.
    ///
    /// # Errors
    /// What only the device itself can refuse.
    fn build(
        &self,
        below: Vec<Box<dyn Device>>,
        size_bytes: u64,
        seed: u64,
    ) -> Result<Box<dyn Device>, Invalid>;
}

/// The devices below a layer that is on so many.
pub(crate) fn take<const COUNT: usize>(below: Vec<Box<dyn Device>>) -> [Box<dyn Device>; COUNT] {
    below.try_into().unwrap_or_else(|below: Vec<_>| panic!("{} devices below, must be {COUNT}", below.len()))
}
