use std::collections::BTreeSet;

use super::*;
use crate::stack::StackFile;

const GIB: u64 = 1 << 30;
const QUOTED: &str = "currency = \"USD\"\ndate = \"2026-11\"\nsource = \"a shop\"\n";

fn parse(text: &str) -> Result<Prices, String> {
    Prices::parse(text, &["my-ssd"]).map_err(|mistake| mistake.in_file("mine.toml").to_string())
}

#[track_caller]
fn check_refused(text: &str, expect: &str) {
    assert_eq!(parse(text).unwrap_err(), expect);
}

/// The built-in prices with those of a text in their place.
fn with(text: &str) -> Prices {
    let mut prices = Prices::built_in();
    prices.replace_with(parse(text).unwrap());
    prices
}

fn built_in(name: &str) -> StackSpec {
    StackSpec::of_name(name, None, StackSpec::usual_file_system(name)).unwrap()
}

fn set(name: &str, keys: &str) -> StackSpec {
    StackSpec::of_name_with(name, None, "xfs", &keys.parse().unwrap()).unwrap()
}

#[track_caller]
fn check(prices: &Prices, stack: &StackSpec, (bytes, years): (u64, u64), total: f64, formula: &str) {
    let price = prices.price_of(stack, bytes, years).unwrap();
    assert!((price.total - total).abs() < 1e-6, "{price:?}");
    assert_eq!(price.formula, formula);
}

#[track_caller]
fn check_unpriced(prices: &Prices, stack: &StackSpec, expect: &str) {
    assert_eq!(prices.price_of(stack, GIB, 1).unwrap_err().to_string(), expect);
}

#[test]
fn every_built_in_file_reads_and_prices_a_name_once() {
    let mut names = BTreeSet::new();
    for (file, text) in FILES {
        let prices = Prices::parse(text, &[]).unwrap_or_else(|mistake| panic!("{file}: {mistake}"));
        assert!(prices.exchange.is_empty(), "{file}: exchange rates are the user's");
        for (name, entry) in prices.entries {
            assert!(!entry.origin.date.is_empty() && !entry.origin.source.is_empty(), "{file}: {name}");
            assert!(names.insert(name.clone()), "{file}: {name} is priced twice");
        }
    }
    assert!(names.len() > 10, "{names:?}");
}

#[test]
fn a_volume_costs_its_size_and_what_is_provisioned_above_the_included() {
    let prices = Prices::built_in();
    let gp3 = built_in("ebs-gp3");
    check(&prices, &gp3, (100 * GIB, 5), 480.0, "100 GiB x 0.08 USD x 60 months");
    // Volumes have whole GiB.
    check(&prices, &gp3, (100_000_000_000, 5), 451.2, "94 GiB x 0.08 USD x 60 months");
    let faster = set("ebs-gp3", "iops_minimum = 6000\niops_maximum = 6000\nrate = \"250 MiB/s\"");
    let formula = "(100 GiB x 0.08 USD + 3,000 IOPS above 3,000 x 0.005 USD + \
        125 MiB/s above 125 x 0.04 USD) x 12 months";
    check(&prices, &faster, (100 * GIB, 1), 12.0 * (8.0 + 15.0 + 5.0), formula);
    let formula = "(100 GiB x 0.125 USD + 16,000 IOPS x 0.065 USD) x 12 months";
    check(&prices, &built_in("ebs-io2"), (100 * GIB, 1), 12.0 * (12.5 + 1_040.0), formula);
}

#[test]
fn a_volume_whose_rate_grows_with_its_size_costs_the_size_of_its_rate() {
    let large = set("ebs-gp2", "capacity = \"1 TiB\"");
    check(&Prices::built_in(), &large, (10 * GIB, 1), 1_228.8, "1,024 GiB x 0.1 USD x 12 months");
}

#[test]
fn a_price_that_holds_up_to_a_rate_is_unknown_beyond_it() {
    let fast = set("ebs-io2", "iops_minimum = 64000\niops_maximum = 64000");
    let expect = "the price of `ebs-io2` is known up to 32000 IOPS, and 64000 are provisioned";
    check_unpriced(&Prices::built_in(), &fast, expect);
}

#[test]
fn a_fixed_size_costs_the_same_however_much_of_it_is_used() {
    let prices = Prices::built_in();
    check(&prices, &built_in("azure-p10"), (GIB, 5), 1_182.6, "19.71 USD x 60 months");
    check(&prices, &built_in("azure-p30"), (100 * GIB, 1), 1_622.04, "135.17 USD x 12 months");
}

#[test]
fn an_array_costs_its_drives_and_says_what_it_leaves_out() {
    let prices = Prices::built_in();
    check(&prices, &built_in("iodrive-160-raid1x2"), (GIB, 5), 12_800.0, "2 x 6400 USD");
    assert_eq!(prices.price_of(&built_in("iodrive-160"), GIB, 5).unwrap().words(), "6,400 USD");
    let text = format!("[prices.cheetah-15k7]\nonce = 60\n{QUOTED}[prices.x25e-32]\nonce = 400\n{QUOTED}");
    let prices = with(&text);
    let raid = prices.price_of(&built_in("raid10-4x15k-wb"), GIB, 5).unwrap();
    assert_eq!((raid.formula.as_str(), &raid.left_out[..]), ("4 x 60 USD", &["the controller"][..]));
    let replicated = prices.price_of(&built_in("drbd-c-1g"), GIB, 5).unwrap();
    assert_eq!(replicated.formula, "2 x 400 USD");
    assert_eq!(replicated.left_out, ["the second server and its link"]);
}

#[test]
fn a_layout_costs_what_its_stacks_cost_together() {
    let prices = Prices::built_in();
    let together = |names: &[&str]| {
        let stacks: Vec<StackSpec> = names.iter().map(|name| built_in(name)).collect();
        prices.price_of_all(&stacks, 1)
    };
    let price = together(&["iodrive-160", "azure-p10"]).unwrap();
    assert!((price.total - 6_400.0 - 12.0 * 19.71).abs() < 1e-6, "{price:?}");
    assert_eq!(price.formula, "6400 USD + 19.71 USD x 12 months");
    let source_of = |name: &str| prices.price_of(&built_in(name), GIB, 1).unwrap().source;
    let sources = format!("{}; {}", source_of("iodrive-160"), source_of("azure-p10"));
    assert_eq!(price.source, sources);
    let refused = |names: &[&str]| together(names).unwrap_err().to_string();
    assert_eq!(refused(&["iodrive-160", "x25e-32"]), "no price of `x25e-32` is known");
    let expect = "its parts are priced in USD and GBP, and no exchange rate is given";
    assert_eq!(refused(&["iodrive-160", "x25m-80-g1"]), expect);
}

#[test]
fn a_price_of_the_whole_stack_leaves_nothing_out() {
    let prices = with(&format!("[prices.raid10-4x15k-wb]\nonce = 900\n{QUOTED}"));
    let raid = prices.price_of(&built_in("raid10-4x15k-wb"), GIB, 5).unwrap();
    assert_eq!((raid.formula.as_str(), raid.left_out.len()), ("900 USD", 0));
    check_unpriced(&prices, &built_in("raid10-4x15k"), "no price of `cheetah-15k7` is known");
}

#[test]
fn an_unknown_price_stays_unknown() {
    check_unpriced(&Prices::built_in(), &built_in("x25e-32"), "no price of `x25e-32` is known");
    let by_rate = with(&format!("[prices.x25e-32]\nper_iops_month = 0.1\n{QUOTED}"));
    let expect = "the price of `x25e-32` depends on IOPS or MiB/s, which only the profile of a cloud volume \
        states";
    check_unpriced(&by_rate, &built_in("x25e-32"), expect);
}

#[test]
fn a_price_has_the_oldest_date_and_each_source_once() {
    let price = Prices::built_in().price_of(&built_in("ebs-gp3"), 100 * GIB, 5).unwrap();
    assert_eq!((price.date.as_str(), price.currency.as_str()), ("2026", "USD"));
    assert!(price.source.contains("date was not checked"), "{price:?}");
    let text = "[prices.x25m-80]\nonce = 1\ncurrency = \"USD\"\ndate = \"2026\"\nsource = \"a shop\"\n\
        [prices.x25m-160]\nonce = 2\ncurrency = \"USD\"\ndate = \"2009-07\"\nsource = \"a shop\"";
    let price = with(text).price_of(&striped("x25m-80", "x25m-160"), GIB, 1).unwrap();
    assert_eq!((price.formula.as_str(), price.date.as_str()), ("1 USD + 2 USD", "2009-07"));
    assert_eq!(price.source, "a shop");
}

fn striped(first: &str, second: &str) -> StackSpec {
    let text = format!("[stacks.a]\nlayer = \"raid\"\nlevel = 0\non = [\"{first}\", \"{second}\"]\n");
    StackFile::parse("s.toml", &text).unwrap().resolve("s.toml", "a").unwrap()
}

#[test]
fn currencies_are_not_mixed_without_a_rate_of_the_user() {
    let (both, built_in_prices) = (striped("x25m-80-g1", "x25m-80"), Prices::built_in());
    let expect = "its parts are priced in GBP and USD, and no exchange rate is given";
    check_unpriced(&built_in_prices, &both, expect);
    let of = |name: &str| built_in_prices.price_of(&built_in(name), GIB, 1).unwrap();
    assert_eq!(of("x25m-80-g1").compare(&of("x25m-80")), None);
    assert_eq!(of("x25m-80").compare(&of("iodrive-160")), Some(Ordering::Less));
    assert_eq!(built_in_prices.in_currency(&of("x25m-80-g1"), "USD"), None);
    let prices = with("[exchange]\nGBP = { USD = 1.5, date = \"2009-07-01\", source = \"a bank\" }");
    let mixed = prices.price_of(&both, GIB, 1).unwrap();
    assert_eq!((mixed.total, mixed.currency.as_str()), (490.0, "GBP"));
    assert_eq!(mixed.formula, "340 GBP + 225 USD, at 0.6667 GBP for 1 USD");
    let dollars = prices.in_currency(&of("x25m-80-g1"), "USD").unwrap();
    assert_eq!((dollars.total, dollars.words().as_str()), (510.0, "510 USD"));
    assert!(dollars.source.ends_with("; a bank"), "{dollars:?}");
}

#[test]
fn memory_costs_its_size() {
    let price = Prices::built_in().price_of_memory(8 * GIB).unwrap();
    assert!((price.total - 97.52).abs() < 1e-9, "{price:?}");
    assert_eq!((price.formula.as_str(), price.words().as_str()), ("8 GiB x 12.19 USD", "97.52 USD"));
}

#[test]
fn a_price_without_a_date_or_a_source_is_refused() {
    let text = "[prices.ebs-gp3]\nper_gib_month = 0.08\ncurrency = \"USD\"\n";
    check_refused(
        &format!("{text}source = \"a page\"\n"),
        "mine.toml: prices.ebs-gp3.date: is missing; for example `date = \"2009-07-21\"`",
    );
    check_refused(
        &format!("{text}date = \"2026\"\nsource = \" \"\n"),
        "mine.toml: prices.ebs-gp3.source: is empty; name the text that has the price",
    );
    for date in ["2026-13", "2026-1", "26", "2026-11-20-1", "soon"] {
        check_refused(
            &format!("{text}date = \"{date}\"\nsource = \"a page\"\n"),
            &format!(
                "mine.toml: prices.ebs-gp3.date: `{date}` is not a date; write for example \"2009\", \
                 \"2009-07\" or \"2009-07-21\""
            ),
        );
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let refused = parse(&format!("[prices.x25m-8]\nonce = 1\n{QUOTED}")).unwrap_err();
    assert_eq!(
        refused,
        "mine.toml: prices.x25m-8: there is no profile or stack `x25m-8`; did you mean `x25m-80`?"
    );
    assert!(parse(&format!("[prices.my-ssd]\nonce = 1\n{QUOTED}")).is_ok());
}

#[test]
fn an_amount_is_above_zero_and_of_one_kind() {
    let price = |keys: &str| format!("[prices.ebs-gp3]\n{keys}\n{QUOTED}");
    check_refused(&price("once = 0"), "mine.toml: prices.ebs-gp3.once: is 0, must be above zero");
    check_refused(
        &price("once = 1\nper_month = 1"),
        "mine.toml: prices.ebs-gp3.once: cannot be there together with a price a month: a drive is bought or \
         rented",
    );
    check_refused(
        &price(""),
        "mine.toml: prices.ebs-gp3: needs an amount: `once` for a drive that is bought, `per_month` or \
         `per_gib_month` for a volume that is rented",
    );
    check_refused(
        &price("per_month = 1\niops_included = 3000"),
        "mine.toml: prices.ebs-gp3.iops_included: belongs to `per_iops_month`, which is missing",
    );
    check_refused(
        &price("per_gib_moth = 1"),
        "mine.toml: prices.ebs-gp3.per_gib_moth: unknown key; did you mean `per_gib_month`? For example \
         `per_gib_month = 0.08`",
    );
}

#[test]
fn a_currency_is_three_capital_letters() {
    check_refused(
        "[memory]\nper_gib = 4\ncurrency = \"$\"\ndate = \"2026\"\nsource = \"a shop\"\n",
        "mine.toml: memory.currency: `$` is no currency; write its three letters, for example \"USD\"",
    );
    check_refused(
        "[exchange]\nGBP = { dollars = 1.5, date = \"2026\", source = \"a bank\" }",
        "mine.toml: exchange.GBP.dollars: `dollars` is no currency; write its three letters, for example \
         \"USD\"",
    );
}

#[test]
fn a_missing_file_is_named() {
    let refused = Prices::read(Path::new("/nowhere/prices.toml"), &[]).unwrap_err().to_string();
    assert!(refused.starts_with("/nowhere/prices.toml: cannot be read: "), "{refused}");
}

/// The example of the documentation.
#[test]
fn the_documented_file_reads() {
    let page = include_str!("../../../../../docs/prices.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let prices = Prices::parse(example, &["my-nvme"]).unwrap();
    assert_eq!(prices.entries.len(), 2);
    assert_eq!(prices.rate("USD", "EUR").map(|(rate, _)| rate), Some(0.9));
}
