use super::*;
use crate::declare;

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Colour {
        Red = "red",
        Blue = "blue",
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq)]
    struct Toy {
        /// How much
        /// it holds.
        pub capacity_bytes: u64 = Size "capacity" in 1..=1_000_000, step Step::MultipleOf(2), hint "about 1 KiB";
        pub colour: Colour = Choice "colour", default Colour::Blue, assumed "nobody saw it";
        pub limit: Option<u64> = PerSecond "iops" in 1..=9;
        pub places: Vec<(u64, u64)> = List "places";
        pub wheels: Option<Wheels> = Group "wheel_";
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq)]
    struct Wheels {
        pub count: u64 = Count "count" in 1..=8;
        pub turn_ns: u64 = Duration "turn";
    }
}

optional_group!(Wheels);

fn values(given: &[(&str, Value)]) -> Values {
    given.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

#[track_caller]
fn check_refused(given: &[(&str, Value)], expect: &str) {
    assert_eq!(Toy::from_values(values(given)).unwrap_err().to_string(), expect);
}

const CAPACITY: (&str, Value) = ("capacity", Value::Number(4));

#[test]
fn what_is_left_out_is_what_the_field_says() {
    let toy = Toy::from_values(values(&[CAPACITY])).unwrap();
    let expect =
        Toy { capacity_bytes: 4, colour: Colour::Blue, limit: None, places: Vec::new(), wheels: None };
    assert_eq!(toy, expect);
    let colour = &Toy::fields()[1];
    assert_eq!(colour.assumed().unwrap(), "colour = blue: nobody saw it");
    assert_eq!(Toy::fields()[0].doc, "How much it holds.");
}

#[test]
fn values_make_the_struct_from_which_they_came() {
    let toy = Toy {
        capacity_bytes: 2_000,
        colour: Colour::Red,
        limit: Some(3),
        places: vec![(1 << 20, 512)],
        wheels: Some(Wheels { count: 4, turn_ns: 1_500 }),
    };
    assert_eq!(Toy::from_values(toy.values()).unwrap(), toy);
    let fields = Toy::fields();
    let keys: Vec<&str> = fields.iter().map(|field| field.key.as_ref()).collect();
    assert_eq!(keys, ["capacity", "colour", "iops", "places", "wheel_count", "wheel_turn"]);
    let written = |style| {
        let values = toy.values();
        fields
            .iter()
            .map(|field| field.written(&values[field.key.as_ref()], style).to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(written(Style::Shortest), ["2 KB", "red", "3", "[[1 MiB, 512 B]]", "4", "1.5 us"]);
    assert_eq!(written(Style::Canonical), ["2000 B", "red", "3", "[[1048576 B, 512 B]]", "4", "1500 ns"]);
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_key_and_bound() {
    check_refused(&[], "`capacity` is missing; about 1 KiB");
    check_refused(&[("capacity", Value::Number(3))], "`capacity` is 3 B, must be a multiple of 2 B");
    check_refused(&[("capacity", Value::Number(0))], "`capacity` is 0 B, must be 1 B to 1 MB");
    check_refused(&[("capacity", Value::Switch(true))], "`capacity` has a value of another kind");
    check_refused(&[CAPACITY, ("iops", Value::Number(10))], "`iops` is 10/s, must be 1/s to 9/s");
    check_refused(&[CAPACITY, ("wheel_turn", Value::Number(1))], "`wheel_count` is missing");
    check_refused(&[CAPACITY, ("speed", Value::Number(1))], "`speed` is unknown");
}

#[test]
fn bounds_are_those_of_the_struct_however_it_was_made() {
    let toy = Toy::from_values(values(&[CAPACITY])).unwrap();
    assert_eq!(toy.check_bounds(), Ok(()));
    let broken = Toy { wheels: Some(Wheels { count: 9, turn_ns: 0 }), ..toy };
    assert_eq!(broken.check_bounds().unwrap_err().to_string(), "`wheel_count` is 9, must be 1 to 8");
}

#[test]
fn the_shortest_text_wins() {
    let texts = [20 << 30, 160_000_000_000, 64_000_000, 1_000_000_007, 0, 512].map(format_size_bytes);
    assert_eq!(texts, ["20 GiB", "160 GB", "64 MB", "1000000007 B", "0 B", "512 B"]);
}
