//! Records and fields as LOAD DATA reads them.

use super::*;
use crate::load::format::FormatTexts;

type Values = Vec<Option<String>>;

/// The values of each record, and its flaw.
fn records(format: &Format, text: &str) -> Vec<(Values, Option<&'static str>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Scan::Record(record) = Scanner::new(format, None).scan(&bytes[at..], true) {
        let value = |index: usize| {
            let scanner = Scanner::new(format, Some(index));
            let Scan::Record(Scanned { key: Some(field), .. }) = scanner.scan(&bytes[at..], true) else {
                panic!("field {index} of {text:?}")
            };
            let value = scanner.value(&bytes[at + field.begin..at + field.end], field.is_enclosed)?;
            Some(String::from_utf8(value.into_owned()).unwrap())
        };
        found.push(((0..record.fields).map(value).collect(), record.flaw));
        at += record.end;
    }
    found
}

/// A record that bytes do not show whole is not taken for another one.
#[track_caller]
fn check_pieces(format: &Format, text: &str) {
    let scanner = Scanner::new(format, Some(0));
    let whole = scanner.scan(text.as_bytes(), true);
    for length in 0..text.len() {
        let piece = scanner.scan(&text.as_bytes()[..length], false);
        assert!(piece == Scan::More || piece == whole, "{:?}: {piece:?}", &text[..length]);
    }
}

#[track_caller]
fn check(format: &Format, text: &str, expect: &[&[Option<&str>]]) {
    let found = records(format, text);
    let owned = |values: &&[Option<&str>]| {
        let values = values.iter().map(|value| value.map(str::to_owned)).collect();
        (values, None)
    };
    assert_eq!(found, expect.iter().map(owned).collect::<Vec<(Values, _)>>(), "{text:?}");
    check_pieces(format, text);
}

#[track_caller]
fn check_flaw(format: &Format, text: &str, fields: usize, expect: &str) {
    let found = records(format, text);
    let [(values, Some(flaw))] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((values.len(), *flaw), (fields, expect));
    check_pieces(format, text);
}

/// A format by its options.
fn csv(texts: &FormatTexts<'_>) -> Format {
    Format::csv().with(texts).unwrap()
}

#[test]
fn mistake_9_an_empty_field_is_a_field() {
    check(&Format::tsv(), "1\t\t3\n", &[&[Some("1"), Some(""), Some("3")]]);
    check(&Format::tsv(), "\t\t\n", &[&[Some(""), Some(""), Some("")]]);
    check(&Format::csv(), "1,,\"\",4\n", &[&[Some("1"), Some(""), Some(""), Some("4")]]);
}

#[test]
fn mistake_9_a_newline_in_a_field_is_a_part_of_it() {
    check(&Format::tsv(), "a\\\nb\tc\n", &[&[Some("a\nb"), Some("c")]]);
    check(&Format::csv(), "\"a\nb\",c\nd,e\n", &[&[Some("a\nb"), Some("c")], &[Some("d"), Some("e")]]);
}

#[test]
fn mistake_8_the_key_has_no_quotation_marks() {
    check(&Format::csv(), "\"abc\",abc,'abc'\n", &[&[Some("abc"), Some("abc"), Some("'abc'")]]);
}

#[test]
fn an_escape_stands_for_one_character() {
    check(
        &Format::tsv(),
        "\\t\\n\\\\\\0\\Z\\b\\r\\x\t\\\t\n",
        &[&[Some("\t\n\\\0\u{1a}\u{8}\rx"), Some("\t")]],
    );
}

#[test]
fn null_is_an_n_behind_an_escape_or_the_word_where_fields_are_enclosed() {
    let escaped = csv(&FormatTexts { fields_escaped_by: Some("\\"), ..FormatTexts::default() });
    check(&Format::tsv(), "\\N\tN\tNULL\tx\\N\n", &[&[None, Some("N"), Some("NULL"), Some("xN")]]);
    check(&Format::csv(), "NULL,\"NULL\",\\N,null\n", &[&[None, Some("NULL"), Some("\\N"), Some("null")]]);
    check(&escaped, "NULL,\\N,\"\\N\"\n", &[&[None, None, None]]);
}

#[test]
fn a_quotation_mark_ends_a_field_before_a_terminator_only() {
    check(&Format::csv(), "\"a\"b\",c\n", &[&[Some("a\"b"), Some("c")]]);
    check(&Format::csv(), "\"a\"\"b\",\"\"\"\"\n", &[&[Some("a\"b"), Some("\"")]]);
    check(&Format::csv(), "a\"b\",c\n", &[&[Some("a\"b\""), Some("c")]]);
}

#[test]
fn an_escape_that_encloses_as_well_escapes_itself_only() {
    let format = csv(&FormatTexts { fields_escaped_by: Some("\""), ..FormatTexts::default() });
    check(&format, "\"a\"\"b\",\"n\"\n", &[&[Some("a\"b"), Some("n")]]);
}

#[test]
fn an_empty_line_is_a_record_of_one_empty_field() {
    check(&Format::csv(), "a\n\nb\n", &[&[Some("a")], &[Some("")], &[Some("b")]]);
}

#[test]
fn the_last_line_may_lack_its_terminator() {
    check(&Format::tsv(), "a\tb\nc\td", &[&[Some("a"), Some("b")], &[Some("c"), Some("d")]]);
    check(&Format::csv(), "a,\"b\"", &[&[Some("a"), Some("b")]]);
    // LOAD DATA does not read a field that begins at the end.
    check(&Format::csv(), "a,", &[&[Some("a")]]);
}

#[test]
fn a_file_that_ends_within_a_field_has_a_flaw() {
    check_flaw(&Format::csv(), "a,\"b\nc,d\n", 2, "the file ends within an enclosed field");
    check_flaw(&Format::tsv(), "a\tb\\", 2, "the file ends within an escape");
}

#[test]
fn terminators_may_be_longer_than_a_byte() {
    let format = csv(&FormatTexts {
        fields_terminated_by: Some("||"),
        lines_terminated_by: Some("\\r\\n"),
        ..FormatTexts::default()
    });
    check(
        &format,
        "a|b||\"c||d\"||e\rf\r\n\ng||\r\n",
        &[&[Some("a|b"), Some("c||d"), Some("e\rf")], &[Some("\ng"), Some("")]],
    );
}

#[test]
fn what_stands_before_the_start_of_a_line_is_passed_over() {
    let format = csv(&FormatTexts { lines_starting_by: Some("xxx"), ..FormatTexts::default() });
    check(
        &format,
        "xxx\"abc\",1\nsomething xxx\"def\",2\n\"ghi\",3\n",
        &[&[Some("abc"), Some("1")], &[Some("def"), Some("2")]],
    );
}

#[test]
fn ignored_lines_end_at_any_terminator_that_is_not_escaped() {
    let check = |format: &Format, text: &str, expect: Option<usize>| {
        assert_eq!(Scanner::new(format, None).ignored_line(text.as_bytes()), expect, "{text:?}");
    };
    check(&Format::csv(), "\"a\nb\",c\n", Some(3));
    check(&Format::tsv(), "a\\\nb\nc", Some(5));
    check(&Format::tsv(), "a", None);
}

/// Every text of these characters, by three formats and with each field as the key.
#[test]
fn the_quick_way_comes_to_the_same_record() {
    const LENGTH: u32 = 7;
    let characters = b"a,\"\\\n";
    let count = characters.len() as u32;
    let escaped = csv(&FormatTexts { fields_escaped_by: Some("\\"), ..FormatTexts::default() });
    let bare = csv(&FormatTexts { fields_enclosed_by: Some(""), ..FormatTexts::default() });
    for format in [Format::csv(), escaped, bare] {
        for key in [None, Some(0), Some(1), Some(2)] {
            let scanner = Scanner::new(&format, key);
            for number in 0..count.pow(LENGTH) {
                let character = |place| characters[(number / count.pow(place) % count) as usize];
                let text: Vec<u8> = (0..LENGTH).map(character).collect();
                for is_end in [false, true] {
                    assert_eq!(scanner.scan(&text, is_end), scanner.scan_fields(&text, is_end), "{text:?}");
                }
            }
        }
    }
}

/// On files that both know, the scanner and the reader of the `csv` crate agree.
#[test]
fn a_file_without_oddities_is_read_as_the_csv_crate_reads_it() {
    let text = "id,text\n1,\"a \"\"b\"\", c\"\n2,\"two\nlines\"\n3,é中\n,\n";
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(text.as_bytes());
    let theirs: Vec<Values> = reader
        .records()
        .map(|record| record.unwrap().iter().map(|field| Some(field.to_owned())).collect())
        .collect();
    let ours: Vec<Values> = records(&Format::csv(), text).into_iter().map(|(values, _)| values).collect();
    assert_eq!(ours, theirs);
}
