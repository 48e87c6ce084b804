use spindle_model::Parameters;

use super::*;

fn profile_with(change: (&str, &str)) -> String {
    let (_, text) = PROFILES.iter().find(|(name, _)| *name == "hdd-7200").unwrap();
    assert!(text.contains(change.0), "{change:?}");
    let changed = text.replacen(change.0, change.1, 1);
    Profile::parse("my.toml", "my", &changed)
        .map(|_| "accepted".to_owned())
        .unwrap_or_else(|error| error.to_string())
}

fn check_profile(change: (&str, &str), expect: &str) {
    assert_eq!(profile_with(change), expect);
}

#[test]
fn every_built_in_profile_is_valid_and_says_what_it_assumes() {
    assert!(PROFILES.is_sorted() && PROFILES.len() > 30);
    for (name, _) in PROFILES {
        let profile = Profile::find(name).unwrap();
        assert!(!profile.summary.is_empty());
        assert_eq!(profile.assumptions.is_empty(), profile.parameters == Parameters::NULL, "{name}");
    }
}

#[test]
fn every_device_that_was_sold_has_a_year_with_an_origin() {
    for (name, _) in PROFILES {
        let profile = Profile::find(name).unwrap();
        assert_eq!(profile.year.is_none(), ["null", "flash-285us-4ch"].contains(name), "{name}");
        assert_eq!(profile.about.iter().any(|fact| fact.key == "year"), profile.year.is_some(), "{name}");
    }
}

#[test]
fn a_year_may_be_absent_but_needs_an_origin_and_bounds() {
    let year = PROFILES.iter().find(|(name, _)| *name == "hdd-7200").unwrap().1;
    let year = year.lines().find(|line| line.starts_with("year = ")).unwrap();
    check_profile((year, ""), "accepted");
    check_profile(
        (year, "year = { value = 2010 }"),
        "my.toml: year: needs a `source`, or an `assumption` that says why this value",
    );
    check_profile(
        (year, "year = { value = 10, source = \"x\" }"),
        "my.toml: year: is 10, must be 1956 to 2100",
    );
}

#[test]
fn a_number_without_a_source_is_refused() {
    check_profile(
        (r#", source = "Seagate Barracuda XT: 64 MB""#, ""),
        "my.toml: parameters.cache: needs a `source`, or an `assumption` that says why this value",
    );
}

#[test]
fn an_unverified_source_is_refused() {
    check_profile(
        ("Seagate Barracuda XT: 64 MB", "[UNVERIFIED]"),
        "my.toml: parameters.cache: has an unverified source: say `assumption` instead of `source`",
    );
}

#[test]
fn a_wrong_unit_is_refused() {
    check_profile(
        ("\"8.5 ms\"", "\"8.5 MB\""),
        "my.toml: parameters.seek_average: `8.5 MB` is not a duration; write for example \"8.5 ms\" or \"30 s\" \
         (ns, us, ms, s, min, h, d)",
    );
}

#[test]
fn a_number_without_a_unit_is_refused() {
    check_profile(
        ("\"8.5 ms\"", "8.5"),
        "my.toml: parameters.seek_average: `8.5` has no unit; write for example \"8.5 ms\"",
    );
}

#[test]
fn a_misspelt_key_is_named_with_the_right_one() {
    check_profile(
        ("seek_average", "seek_avrage"),
        "my.toml: parameters.seek_avrage: unknown key; did you mean `seek_average`?",
    );
}

#[test]
fn an_extra_key_is_named() {
    let sentence = profile_with(("capacity =", "colour = { value = 1, source = \"x\" }\ncapacity ="));
    assert!(
        sentence.starts_with("my.toml: parameters.colour: unknown key; known here: `capacity`, `rotation`"),
        "{sentence}"
    );
}

#[test]
fn a_value_out_of_bounds_is_named_with_the_bound() {
    check_profile(
        ("\"7200 rpm\"", "\"72 rpm\""),
        "my.toml: parameters.rotation: is 72 rpm, must be 1000 rpm to 60000 rpm",
    );
}

/// Changes a line in the profile of a drive with an SLC cache.
fn check_slc_profile(change: (&str, &str), expect: &str) {
    let (_, text) = PROFILES.iter().find(|(name, _)| *name == "850evo-250").unwrap();
    let line = text.lines().find(|line| line.starts_with(change.0)).unwrap();
    let parsed = Profile::parse("my.toml", "my", &text.replacen(line, change.1, 1));
    assert_eq!(parsed.map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string()), expect);
}

#[test]
fn an_slc_cache_has_all_of_its_keys_or_none() {
    check_slc_profile(("slc_program", ""), "my.toml: parameters.slc_program: is missing");
    check_slc_profile(
        ("slc_program", "slc_progam = { value = \"1 us\", source = \"x\" }"),
        "my.toml: parameters.slc_progam: unknown key; did you mean `slc_program`?",
    );
}

#[test]
fn an_slc_cache_that_does_not_fit_is_refused_with_the_key() {
    check_slc_profile(
        ("slc_static", "slc_static = { value = \"30 GB\", source = \"x\" }"),
        "my.toml: parameters.slc_static: is 30 GB, must be at most 6225 MB: one part in 3 (`cell_bits`) of the spare space that `gc_high_watermark` leaves",
    );
}

#[test]
fn read_retries_have_both_keys_or_none() {
    let with = |keys: &str| profile_with(("capacity =", &format!("{keys}\ncapacity =")));
    let share = "read_retries = { value = \"0.8 %\", source = \"x\" }";
    let rotations = "retry_rotations = { value = 5, source = \"x\" }";
    assert_eq!(with(&format!("{share}\n{rotations}")), "accepted");
    assert_eq!(with(share), "my.toml: parameters.retry_rotations: is missing");
    assert_eq!(with(rotations), "my.toml: parameters.read_retries: is missing");
    assert_eq!(
        with(&format!("{rotations}\n{}", share.replace("0.8 %", "0 %"))),
        "my.toml: parameters.read_retries: is 0 %, must be 0.0001 % to 100 %"
    );
}

#[test]
fn broken_toml_is_named_with_its_line() {
    let sentence = profile_with(("kind = \"disk\"", "kind = = \"disk\""));
    assert!(sentence.starts_with("my.toml: line 4: not valid TOML: "), "{sentence}");
}

#[test]
fn an_unknown_kind_is_named_with_those_that_are_known() {
    check_profile(
        ("kind = \"disk\"", "kind = \"tape\""),
        "my.toml: kind: `tape` is not known; known here: `null`, `disk`, `flash` and `volume`",
    );
}

#[test]
fn a_name_that_is_not_built_in_deviates_from_nothing() {
    assert_eq!(known_deviations_of("nowhere"), []);
    assert!(!known_deviations_of("micron7300-pro").is_empty());
    assert!(!known_deviations_of("raid10-8x15k").is_empty());
}
