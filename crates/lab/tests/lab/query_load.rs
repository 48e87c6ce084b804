//! Files loaded into two servers, against LOAD DATA of the same file into one.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, OptsBuilder};
use spindle_load::Endpoint;
use spindle_scatter::facts::Kind;
use spindle_scatter::mapping::{KeyValue, Mapper};
use tempfile::TempDir;

use crate::server_support::*;
use crate::{in_check_all, wait_until};

const FACTS: &str = "CREATE TABLE facts (id INT PRIMARY KEY, day_id INT, name VARCHAR(60), note TEXT)";
const CSV: &str = r#"CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' ENCLOSED BY '"' ESCAPED BY '' LINES TERMINATED BY '\n'"#;

/// Server and database of each copy of a table.
const PLACES: [(usize, &str); 3] = [(0, "star"), (1, "star"), (0, "direct")];

type Rows = Vec<Vec<Option<String>>>;

/// Two servers, each with a database `star` for the loader; the first has `direct` as well.
struct Bench {
    servers: [OwnServer; 2],
    directory: TempDir,
}

struct Told {
    code: i32,
    text: String,
}

fn bench() -> Option<Bench> {
    bench_of("mariadb")
}

fn bench_of(kind: &str) -> Option<Bench> {
    let settings = [("innodb_buffer_pool_size", "64M"), ("local_infile", "ON")];
    let servers = [0, 1].map(|_| installed(kind).map(|server| OwnServer::empty(server, &settings)));
    let [Some(first), Some(second)] = servers else { return None };
    let bench = Bench { servers: [first, second], directory: directory() };
    for database in ["star", "direct"] {
        bench.everywhere(&format!("CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET utf8mb4"));
    }
    Some(bench)
}

impl Bench {
    fn socket(&self, server: usize) -> String {
        let Endpoint::MysqlSocket { path, .. } = self.servers[server].endpoint() else { panic!("no socket") };
        path.to_string_lossy().into_owned()
    }

    fn connect(&self, server: usize, database: &str) -> Conn {
        let options = OptsBuilder::new().socket(Some(self.socket(server))).user(Some("root"));
        Conn::new(options.db_name(Some(database).filter(|name| !name.is_empty()))).unwrap()
    }

    /// A statement on both servers, in no database.
    fn everywhere(&self, statement: &str) {
        for server in [0, 1] {
            self.connect(server, "").query_drop(statement).unwrap();
        }
    }

    /// A table of both servers and of the direct answer.
    fn create(&self, table: &str) {
        for (server, database) in PLACES {
            self.connect(server, database).query_drop(table).unwrap();
        }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command.args(["query", "load"]).args(arguments).current_dir(self.directory.path());
        command
    }

    fn urls(&self) -> String {
        format!("socket:{},socket:{}", self.socket(0), self.socket(1))
    }

    /// Loads into both servers.
    fn load(&self, table: &str, column: &str, arguments: &[&str]) -> Told {
        let urls = self.urls();
        let table = format!("star.{table}");
        let servers = ["--table", &table, "--server", &urls, "--column", column];
        let output = self.command(&[&servers, arguments].concat()).output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        Told { code: output.status.code().unwrap(), text }
    }

    #[track_caller]
    fn check_loads(&self, table: &str, column: &str, arguments: &[&str]) -> String {
        let told = self.load(table, column, arguments);
        assert_eq!(told.code, 0, "{}", told.text);
        told.text
    }

    #[track_caller]
    fn check_refused(&self, table: &str, column: &str, arguments: &[&str], expect: &str) {
        let told = self.load(table, column, arguments);
        assert!(told.code == 2 && told.text.contains(expect), "exit code {}: {}", told.code, told.text);
        assert!(!self.path("facts.csv.load-state").exists(), "a load has begun");
    }

    /// One server's own LOAD DATA.
    fn load_directly(&self, file: &str, table: &str, clauses: &str) {
        let text = fs::read(self.path(file)).unwrap();
        let mut connection = self.connect(0, "direct");
        let send = LocalInfileHandler::new(move |_, stream| stream.write_all(&text));
        connection.set_local_infile_handler(Some(send));
        let statement = format!("LOAD DATA LOCAL INFILE 'x' INTO TABLE {table} {clauses}");
        let result = connection.query_iter(statement).unwrap();
        assert!(result.info_str().ends_with("Warnings: 0"), "{}", result.info_str());
    }

    fn rows(&self, server: usize, database: &str, table: &str) -> Rows {
        let mut connection = self.connect(server, database);
        let value = |value: mysql::Value| match value {
            mysql::Value::NULL => None,
            mysql::Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
            other => panic!("{other:?}"),
        };
        let rows = connection.query_iter(format!("SELECT * FROM {table}")).unwrap();
        let mut rows: Rows = rows.map(|row| row.unwrap().unwrap().into_iter().map(value).collect()).collect();
        rows.sort();
        rows
    }

    /// The shards have what one server has of the file, each its part.
    #[track_caller]
    fn check_shards(&self, table: &str, key: usize, kind: Kind) {
        let shards = [0, 1].map(|server| self.rows(server, "star", table));
        for (index, rows) in shards.iter().enumerate() {
            for row in rows {
                let value = KeyValue::of(row[key].as_deref(), kind).unwrap();
                assert_eq!(Mapper::Hash.shard_of(&value, 2), Some(index), "{row:?}");
            }
        }
        let mut together = shards.concat();
        together.sort();
        let direct = self.rows(0, "direct", table);
        assert_eq!(together.len(), direct.len());
        assert_eq!(together, direct);
    }

    fn empty(&self, table: &str) {
        for (server, database) in PLACES {
            self.connect(server, database).query_drop(format!("TRUNCATE {table}")).unwrap();
        }
    }

    fn state(&self, name: &str) -> Option<serde_json::Value> {
        serde_json::from_str(&fs::read_to_string(self.path(name)).ok()?).ok()
    }
}

/// Texts of all that has a meaning in one of the formats.
fn text_of(mut number: usize) -> String {
    const PIECES: [&str; 13] = ["", "a", "\"", "\\", "\t", "\n", "é", "中", "NULL", "N", ",", " ", "'"];
    let mut text = String::new();
    while number > 0 {
        text += PIECES[number % PIECES.len()];
        number /= PIECES.len();
    }
    text
}

const RANDOM_ROWS: usize = 5_000;

fn random_csv() -> String {
    let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
    let row =
        |id: usize| format!("{id},{},{},{}\n", id * 7 % 1000, quoted(text_of(id)), quoted(text_of(id * 31)));
    (1..=RANDOM_ROWS).map(row).collect()
}

fn random_tsv() -> String {
    let escaped = |text: String| {
        text.replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', if text.len().is_multiple_of(2) { "\\n" } else { "\\\n" })
    };
    let row = |id: usize| {
        format!("{id}\t{}\t{}\t{}\n", id * 7 % 1000, escaped(text_of(id)), escaped(text_of(id * 31)))
    };
    (1..=RANDOM_ROWS).map(row).collect()
}

#[test]
fn both_shards_have_what_load_data_gives_one_server() {
    let Some(bench) = in_check_all(bench) else { return };
    check_formats(&bench);
    check_other_tables(&bench);
}

#[test]
fn shards_of_mysql_are_loaded_as_those_of_mariadb() {
    let Some(bench) = in_check_all(|| bench_of("mysql")) else { return };
    check_formats(&bench);
    check_bad_rows(&bench);
}

fn check_formats(bench: &Bench) {
    bench.create(FACTS);
    let check = |arguments: &[&str], text: &str, clauses: &str| {
        bench.write("file", text);
        bench.load_directly("file", "facts", clauses);
        bench.check_loads("facts", "day_id", &[arguments, &["file"]].concat());
        bench.check_shards("facts", 1, Kind::Integer);
        bench.empty("facts");
    };
    check(
        &["--format", "csv", "--ignore-lines", "1"],
        "id,day_id,name,note\n1,10,\"abc\",\"a \"\"quoted\"\" text, with a comma\"\n2,11,,\"two\nlines\"\n3,12,é中,NULL\n\
         4,13,\"NULL\",\"\"\n5,NULL,back\\slash,\"\\N\"\n6,-15,'abc',\"a \"b\" c\"",
        &format!("{CSV} IGNORE 1 LINES"),
    );
    check(
        &[],
        "1\t10\tabc\ttab\\tand\\nnewline\n2\t11\t\ttwo\\\nlines\n3\t 0012\té中\t\\N\n4\t13\tNULL\t\n5\t\\N\tback\\\\slash\t\\0x\n",
        "CHARACTER SET utf8mb4",
    );
    check(
        &["--fields-terminated-by", "||", "--lines-terminated-by", "\\r\\n", "--lines-starting-by", "> "],
        "> 1||10||a|b||x\\||y\r\nno row\r\n> 2||11||\n||\\N\r\n",
        r"CHARACTER SET utf8mb4 FIELDS TERMINATED BY '||' LINES STARTING BY '> ' TERMINATED BY '\r\n'",
    );
    check(
        &["--columns", "note,@skipped,day_id,id", "--fields-escaped-by", "", "--fields-enclosed-by", "'"],
        "a\\\t1\t7\t1\n'it''s'\t'2'\t'8'\t2\n",
        r"CHARACTER SET utf8mb4 FIELDS ENCLOSED BY '\'' ESCAPED BY '' (note, @skipped, day_id, id)",
    );
    check(&["--format", "csv", "--batch", "97"], &random_csv(), CSV);
    check(&["--batch", "97"], &random_tsv(), "CHARACTER SET utf8mb4");
}

fn check_other_tables(bench: &Bench) {
    // Characters of another set, and a key that is a text.
    bench.create("CREATE TABLE cities (name VARCHAR(20), people INT)");
    bench.write("latin1", b"K\xf6ln\t1\nBonn\t2\nbonn \t3\n");
    let told = bench.check_loads("cities", "name", &["--character-set", "latin1", "latin1"]);
    assert!(told.contains("1 rejected: latin1.rejects.csv"), "{told}");
    let rejects = fs::read(bench.path("latin1.rejects.csv")).unwrap();
    assert!(String::from_utf8_lossy(&rejects).contains("name is not ASCII, so it has no shard"));

    // A table without the column is a reference table.
    bench.create("CREATE TABLE carriers (code VARCHAR(8) PRIMARY KEY, name VARCHAR(20))");
    bench.write("carriers", "AA\tfirst\nBB\tsecond\n");
    bench.check_loads("carriers", "day_id", &["carriers"]);
    bench.load_directly("carriers", "carriers", "");
    assert_eq!(
        [0, 1].map(|server| bench.rows(server, "star", "carriers")),
        [0, 1].map(|_| bench.rows(0, "direct", "carriers"))
    );
}

#[test]
fn mistake_8_a_row_is_where_a_query_looks_for_its_text() {
    let Some(bench) = in_check_all(bench) else { return };
    bench.create("CREATE TABLE names (name VARCHAR(20), form INT)");
    bench.write("names.csv", "abc,1\n\"abc\",2\n'abc',3\n\"a,b\"\"c\",4\n\"\",5\n,6\nNULL,7\n");
    bench.load_directly("names.csv", "names", CSV);
    bench.check_loads("names", "name", &["--format", "csv", "names.csv"]);
    bench.check_shards("names", 0, Kind::Text);
}

#[test]
fn mistake_9_an_empty_field_and_a_newline_shift_nothing_and_a_row_without_a_shard_is_told() {
    let Some(bench) = in_check_all(bench) else { return };
    bench.create(FACTS);
    bench.write("facts.csv", "1,2,,\n2,3,\"\n\",\"a\n\nb\"\n3,9,x,y\n4,,a,b\n\n5,2,,c\n");
    let config = format!(
        "column = \"day_id\"\nmapper = \"directory\"\n[[shards]]\nname = \"one\"\nserver = \"socket:{}\"\n\
         [[shards]]\nname = \"two\"\nserver = \"socket:{}\"\n[[directory]]\nshard = \"one\"\nvalues = [2]\n\
         [[directory]]\nshard = \"two\"\nfirst = 3\nlast = 8\n",
        bench.socket(0),
        bench.socket(1)
    );
    bench.write("shards.toml", config);
    let arguments = ["--config", "shards.toml", "--table", "star.facts", "--format", "csv", "facts.csv"];
    let output = bench.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = |text: &str| Some(text.to_owned());
    let row = |values: [&str; 4]| values.map(shown).to_vec();
    assert_eq!(bench.rows(0, "star", "facts"), [row(["1", "2", "", ""]), row(["5", "2", "", "c"])]);
    assert_eq!(bench.rows(1, "star", "facts"), [row(["2", "3", "\n", "a\n\nb"])]);
    let expect = [
        (6, "`9` of day_id is on no shard of the directory"),
        (7, "`` of day_id is not an integer, so it has no shard"),
        (8, "it has 1 field in place of 4"),
    ];
    check_rejects(&bench, "facts.csv.rejects.csv", &expect);
}

/// Lines and reasons, in the order of the lines.
#[track_caller]
fn check_rejects(bench: &Bench, file: &str, expect: &[(u64, &str)]) {
    let mut reader = csv::Reader::from_path(bench.path(file)).unwrap();
    let mut found: Vec<(u64, String)> = reader
        .records()
        .map(|record| record.unwrap())
        .map(|record| (record[1].parse().unwrap(), record[3].to_owned()))
        .collect();
    found.sort();
    assert_eq!(found.len(), expect.len(), "{found:?}");
    for ((line, reason), (expected_line, words)) in found.iter().zip(expect) {
        assert!(line == expected_line && reason.contains(words), "{found:?}");
    }
}

const BAD: &str = "1,2,3\n2,3\n3,x,1\n4,4,300\n5,5,5\n1,2,9\n7,7,\"a\nb\"\n9,8,\"open";

#[test]
fn a_bad_row_is_told_with_its_line_and_the_others_are_loaded() {
    let Some(bench) = in_check_all(bench) else { return };
    check_bad_rows(&bench);
}

fn check_bad_rows(bench: &Bench) {
    bench.create("CREATE TABLE small (id INT PRIMARY KEY, day_id INT, n TINYINT)");
    bench.write("bad.csv", BAD);
    let csv = ["--format", "csv", "bad.csv"];
    let told = bench.check_loads("small", "day_id", &csv);
    assert!(told.contains("8 rows read") && told.contains("6 rejected: bad.csv.rejects.csv"), "{told}");
    let expect = [
        (2, "it has 2 fields in place of 3"),
        (3, "`x` of day_id is not an integer"),
        (4, "Out of range value for column 'n'"),
        (6, "Duplicate entry '1'"),
        (7, "Incorrect integer value"),
        (9, "the file ends within an enclosed field"),
    ];
    check_rejects(bench, "bad.csv.rejects.csv", &expect);
    let ids = |server| {
        bench.rows(server, "star", "small").into_iter().filter_map(|row| row[0].clone()).collect::<Vec<_>>()
    };
    assert_eq!([ids(0), ids(1)], [["1"], ["5"]]);

    let again = |arguments: &[&str]| bench.load("small", "day_id", &[arguments, &csv].concat());
    assert!(again(&[]).text.contains("--rejects: bad.csv.rejects.csv has rows of another load"));
    let told = again(&["--rejects", "ignored", "--on-duplicate", "ignore"]);
    assert!(
        told.code == 0 && told.text.contains("2 ignored") && told.text.contains("1 ignored"),
        "{}",
        told.text
    );
    let told = again(&["--rejects", "replaced", "--on-duplicate", "replace"]);
    assert!(told.code == 0 && told.text.contains("1 replaced"), "{}", told.text);
    assert_eq!(bench.rows(0, "star", "small")[0][2].as_deref(), Some("9"));

    bench.empty("small");
    let told = again(&["--rejects", "few", "--rejects-most", "4", "--state", "few.state"]);
    assert!(
        told.code == 1 && told.text.contains("more than 4 rows are rejected (--rejects-most)"),
        "{}",
        told.text
    );
}

/// Starts a load that stops because the second shard's table is locked, and kills it. `loaded`: rows of the first shard.
fn killed(bench: &Bench, arguments: &[&str], loaded: u64) {
    let mut lock = bench.connect(1, "star");
    lock.query_drop("LOCK TABLES facts WRITE").unwrap();
    let urls = bench.urls();
    let servers = ["--table", "star.facts", "--server", &urls, "--column", "day_id"];
    let mut command = bench.command(&[&servers, arguments].concat());
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The second shard has three batches that it does not take. The first one has loaded what was read meanwhile.
    wait_until("the first shard to go ahead", || {
        bench
            .state("facts.csv.load-state")
            .is_some_and(|state| state["shards"][0]["counts"]["loaded"] == loaded)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    lock.query_drop("UNLOCK TABLES").unwrap();
}

#[test]
fn a_load_that_was_killed_goes_on_where_each_shard_was() {
    let Some(bench) = in_check_all(bench) else { return };
    // Without a key: a row that is loaded twice is there twice.
    bench.create("CREATE TABLE facts (id INT, day_id INT)");
    let rows: String =
        (0..5_000).map(|id| if id == 10 { "10,x\n".to_owned() } else { format!("{id},{id}\n") }).collect();
    bench.write("facts.csv", rows.replace("10,x\n", ""));
    bench.load_directly("facts.csv", "facts", CSV);
    bench.write("facts.csv", &rows);
    let arguments = ["--format", "csv", "--batch", "100", "facts.csv"];
    killed(&bench, &arguments, 200);

    let told = bench.load("facts", "day_id", &arguments);
    assert!(told.code == 2 && told.text.contains("--resume goes on with it"), "{}", told.text);
    let other =
        bench.load("facts", "day_id", &["--resume", "--format", "csv", "--ignore-lines", "1", "facts.csv"]);
    assert!(other.code == 2 && other.text.contains("whose options differ from this one's"), "{}", other.text);
    let resume = [&["--resume"], &arguments[..]].concat();
    let told = bench.check_loads("facts", "day_id", &resume);
    assert!(told.contains("5,000 rows read") && told.contains("1 rejected"), "{told}");
    bench.check_shards("facts", 1, Kind::Integer);
    check_rejects(&bench, "facts.csv.rejects.csv", &[(11, "`x` of day_id is not an integer")]);
    assert!(!bench.path("facts.csv.load-state").exists());
}

#[test]
fn a_batch_that_may_have_been_committed_is_told() {
    let Some(bench) = in_check_all(bench) else { return };
    bench.create("CREATE TABLE facts (id INT, day_id INT)");
    bench.write("facts.csv", (0..5_000).map(|id| format!("{id},{id}\n")).collect::<String>());
    bench.load_directly("facts.csv", "facts", CSV);
    let arguments = ["--format", "csv", "--batch", "100", "facts.csv"];
    killed(&bench, &arguments, 300);
    // As if the process had died before it heard of the commit.
    let mut state = bench.state("facts.csv.load-state").unwrap();
    let shard = &mut state["shards"][0];
    let (done, counts) = (shard["done"].clone(), shard["counts"].clone());
    shard["begun"] = serde_json::json!({"to": done, "counts": counts, "rejects": []});
    shard["done"] = serde_json::json!({"file": 0, "byte": 0, "line": 1, "rows": 0});
    shard["counts"] = serde_json::json!({"loaded": 0, "replaced": 0, "ignored": 0, "rejected": 0});
    bench.write("facts.csv.load-state", state.to_string());

    let resume = [&["--resume"], &arguments[..]].concat();
    let told = bench.load("facts", "day_id", &resume);
    assert!(
        told.code == 2 && told.text.contains("committed a batch of 300 rows, from line 1"),
        "{}",
        told.text
    );
    bench.check_loads("facts", "day_id", &[&["--in-doubt", "loaded"], &resume[..]].concat());
    bench.check_shards("facts", 1, Kind::Integer);
}

#[test]
fn what_cannot_be_loaded_is_refused_before_a_row_is() {
    let Some(bench) = in_check_all(bench) else { return };
    bench.create(FACTS);
    bench.write("facts.csv", "1,2,a,b\n");
    bench.write("windows.csv", "1,2,a,b\r\n");
    let check = |arguments: &[&str], expect: &str| {
        bench.check_refused("facts", "day_id", &[arguments, &["--format", "csv"]].concat(), expect);
    };
    check(&["none.csv"], "none.csv: No such file or directory");
    check(&["windows.csv"], "--lines-terminated-by: the lines of windows.csv end with a carriage return");
    check(
        &["--columns", "id,dayid", "facts.csv"],
        "--columns: `dayid` is no column of `star`.`facts` on socket ",
    );
    check(
        &["--columns", "id,@day_id,name,note", "facts.csv"],
        "--columns: `day_id` is missing, by which the table is sharded",
    );
    check(&["--set", "a=1", "facts.csv"], "--set: is not supported");
    check(
        &["--fields-enclosed-by", "''", "facts.csv"],
        "--fields-enclosed-by: 2 characters are not supported",
    );
    check(&["--resume", "facts.csv"], "--resume: facts.csv.load-state is not there");
    bench.connect(0, "star").query_drop("CREATE TABLE one (day_id INT)").unwrap();
    bench.check_refused("one", "day_id", &["facts.csv"], "--table: socket ");
    bench.everywhere("CREATE TABLE star.old (day_id INT) ENGINE = MyISAM");
    bench.check_refused("old", "day_id", &["facts.csv"], "is of the engine MyISAM, which cannot take back");
    bench.everywhere("CREATE TABLE star.prices (price DECIMAL(10,2))");
    bench.check_refused("prices", "price", &["facts.csv"], "is sharded by `price` of the type decimal");
    bench.everywhere("SET GLOBAL local_infile = 0");
    check(
        &["facts.csv"],
        "takes no files of its clients: SET GLOBAL local_infile = 1 there, or use --split-into",
    );

    // That way out.
    bench.write("many.csv", "id\n1,2,a,\"b\nc\"\n2,3,c,d\n3,x,e,f\n4,4,g,h");
    let told = bench.check_loads(
        "facts",
        "day_id",
        &["--format", "csv", "--ignore-lines", "1", "--split-into", "parts", "many.csv"],
    );
    assert!(
        told.contains("2 rows written") && told.contains("1 row written") && told.contains("1 rejected"),
        "{told}"
    );
    let part = |number: u32| fs::read_to_string(bench.path(&format!("parts/facts-{number}.data"))).unwrap();
    assert_eq!([part(1), part(2)], ["1,2,a,\"b\nc\"\n4,4,g,h\n", "2,3,c,d\n"]);
}

#[test]
fn the_standard_input_is_loaded_into_one_server() {
    let Some(bench) = in_check_all(bench) else { return };
    bench.create("CREATE TABLE facts (id INT, day_id INT)");
    let url = format!("socket:{}", bench.socket(0));
    let arguments = ["--server", &url, "--table", "star.facts", "-"];
    let mut child = bench.command(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1\t2\n3\t4\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("2 rows read"));
    assert_eq!(bench.rows(0, "star", "facts").len(), 2);
}
