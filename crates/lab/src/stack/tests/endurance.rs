//! `[endurance]` of profiles.

use super::*;
use crate::stack::values::Origin;

fn read(endurance: &str) -> Result<Profile, String> {
    let (_, text) = PROFILES.iter().find(|(name, _)| *name == "hdd-7200").unwrap();
    let text = format!("{}\n[endurance]\n{endurance}\n", text.split("[[known_deviations]]").next().unwrap());
    Profile::parse("my.toml", "my", &text).map_err(|mistake| mistake.to_string())
}

#[track_caller]
fn check_refused(endurance: &str, expect: &str) {
    assert_eq!(read(endurance).unwrap_err(), expect);
}

#[test]
fn every_figure_of_a_built_in_drive_has_a_source() {
    let mut count = 0;
    for (name, _) in PROFILES {
        let profile = Profile::find(name).unwrap();
        for fact in profile.about.iter().filter(|fact| fact.key != "year") {
            assert!(matches!(fact.origin, Origin::Source(_)), "{name}: {}", fact.key);
            count += 1;
        }
        assert!(profile.endurance.is_none() || profile.parameters.kind() == "flash", "{name}");
    }
    assert!(count > 20, "{count}");
}

#[test]
fn sheets_are_read_in_their_own_units() {
    let text = "total_bytes_written = { value = \"75 TB\", source = \"a sheet\" }\n\
        drive_writes_per_day = { value = 1.3, source = \"a sheet\" }";
    let endurance = read(text).unwrap().endurance.unwrap();
    assert_eq!(endurance.total_bytes_written, Some(75_000_000_000_000));
    assert_eq!((endurance.drive_writes_per_day(), endurance.warranty_years), (Some(1.3), None));
    let whole = read("drive_writes_per_day = { value = 3, source = \"a sheet\" }").unwrap();
    assert_eq!(whole.endurance.unwrap().drive_writes_per_day(), Some(3.0));
    assert_eq!(whole.about[1].value, "300 %");
}

#[test]
fn a_figure_needs_its_origin_and_its_bounds() {
    check_refused(
        "warranty_years = { value = 5 }",
        "my.toml: endurance.warranty_years: needs a `source`, or an `assumption` that says why this value",
    );
    check_refused(
        "warranty_years = { value = 500, source = \"a sheet\" }",
        "my.toml: endurance.warranty_years: is 500, must be 1 to 50",
    );
    check_refused(
        "program_erase_cyles = { value = 5, source = \"a sheet\" }",
        "my.toml: endurance.program_erase_cyles: unknown key; did you mean `program_erase_cycles`?",
    );
}

/// Records carry the hashes of stacks.
#[test]
fn endurance_is_no_part_of_the_hash() {
    let stack = StackSpec::of_name("870evo", None, "xfs").unwrap();
    assert!(stack.drives()[0].facts.endurance.is_some());
    let text = canonical::text(&stack);
    assert!(["endurance", "total_bytes_written", "warranty"].iter().all(|key| !text.contains(key)), "{text}");
}
