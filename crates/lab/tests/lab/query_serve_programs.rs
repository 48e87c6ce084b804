//! Programs that others wrote as clients of the proxy.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use spindle_lab::server::package::{cache_directory, unpacked_mysql};
use spindle_scatter::proxy::{Plugin, Users, tls};

use crate::serve_support::{Bench, bench_with, user, with_users};
use crate::{in_check_all, skip};

/// What a client of the command line prints.
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn mariadb(bench: &Bench) -> Command {
    command_line("mariadb", bench)
}

/// The client of MariaDB or MySQL.
fn command_line(program: impl AsRef<OsStr>, bench: &Bench) -> Command {
    let mut command = Command::new(program);
    let port = format!("--port={}", bench.address.port());
    command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", &port, "--user=any", "--batch"]);
    command.env("MYSQL_PWD", "three");
    command
}

const QUERY: &str = "SELECT id, name, price, HEX(bytes) FROM kinds; USE information_schema; SELECT DATABASE(); \
                     SHOW DATABASES LIKE 'shop'";
const ROWS: &str = "id\tname\tprice\tHEX(bytes)\n1\tit's é 中 \\\\\t-1234567890.1234\t00FF27\n2\t\t0.0000\t\n\
                    3\tNULL\tNULL\tNULL\nDATABASE()\ninformation_schema\nDatabase (shop)\nshop\n";

#[test]
fn the_client_of_the_command_line_works() {
    let Some(bench) = in_check_all(with_users) else { return };
    let through = printed(mariadb(&bench).args(["--default-character-set=utf8mb4", "shop", "-e", QUERY]));
    assert_eq!(through, ROWS);
    let plugin = ["--default-auth=caching_sha2_password", "-e", "SELECT 7"];
    assert_eq!(printed(mariadb(&bench).args(plugin)), "7\n7\n");
    // Of another character set.
    let latin = mariadb(&bench)
        .args([
            "--default-character-set=latin1",
            "shop",
            "-e",
            "SELECT LEFT(name, 6) FROM kinds WHERE id = 1",
        ])
        .output()
        .unwrap();
    assert_eq!(latin.stdout, b"LEFT(name, 6)\nit's \xE9\n");
}

#[test]
fn mysqls_client_of_the_command_line_works() {
    let Some(bench) = in_check_all(with_users) else { return };
    let Some(program) = unpacked_mysql() else {
        return skip("no current MySQL: run `tools/install mysql`").unwrap_or_default();
    };
    let client = || {
        let mut command = command_line(program.with_file_name("../bin/mysql"), &bench);
        // It knows `caching_sha2_password` only, and asks for the key with which it hides a password.
        command.arg("--get-server-public-key");
        command
    };
    assert_eq!(printed(client().args(["--default-character-set=utf8mb4", "shop", "-e", QUERY])), ROWS);
    let refused = client().args(["shop", "-e", "SELECT * FROM none_such"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("ERROR 1146 (42S02)") && !refused.status.success(), "{words}");
}

const SCRIPT: &str = r#"
import datetime, decimal, sys, pymysql
client = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="any", password="three", database="shop")
with client.cursor() as cursor:
    cursor.execute("SELECT tiny, whole, price, ratio, day, moment, clock, name, bytes FROM kinds ORDER BY id")
    first, second, third = cursor.fetchall()
    assert first == (-128, 2**64 - 1, decimal.Decimal("-1234567890.1234"), 0.1, datetime.date(2020, 2, 29),
        datetime.datetime(2020, 2, 29, 23, 59, 58, 1), -datetime.timedelta(hours=838, minutes=59, seconds=59),
        "it's é 中 \\", b"\x00\xff'"), first
    assert third == (None,) * 9, third
    cursor.execute("SELECT COUNT(*) FROM fact WHERE day_id IN (%s, %s)", (1, 2))
    assert cursor.fetchone() == (40,)
    cursor.execute("SELECT id, %s FROM kinds WHERE bytes = %s", (b"\\\xff", b"\x00\xff'"))
    assert cursor.fetchall() == ((1, b"\\\xff"),)
    try:
        cursor.execute("SELECT * FROM none_such")
    except pymysql.err.ProgrammingError as error:
        assert error.args[0] == 1146
client.commit()
client.ping()
client.select_db("information_schema")
client.close()
print("done")
"#;

#[test]
fn pymysql_works() {
    let Some(bench) = in_check_all(with_users) else { return };
    let python = "/usr/bin/python3";
    let has_module = Command::new(python).args(["-c", "import pymysql"]).stderr(Stdio::null()).status();
    if !has_module.is_ok_and(|status| status.success()) {
        return skip("no PyMySQL").unwrap_or_default();
    }
    let port = bench.address.port().to_string();
    assert_eq!(printed(Command::new(python).args(["-c", SCRIPT, &port])), "done\n");
}

/// What programs do over MySQL's JDBC driver: with statements as texts, prepared by the servers, and with cursors; and what DBeaver
/// asks to show tables with their columns.
const JAVA: &str = r#"
import java.math.BigDecimal;
import java.sql.*;
import java.util.*;

public class Client {
    static void check(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new AssertionError(found + " instead of " + expected);
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:mysql://127.0.0.1:" + arguments[0] + "/shop?allowPublicKeyRetrieval=true&connectionTimeZone=UTC";
        for (String more : List.of("", "&useServerPrepStmts=true", "&useServerPrepStmts=true&useCursorFetch=true&defaultFetchSize=1",
                "&useInformationSchema=true&cacheServerConfiguration=true&useLocalSessionState=true")) {
            try (Connection client = DriverManager.getConnection(url + more, "any", "three")) {
                use(client);
                describe(client);
            }
        }
        System.out.println("done");
    }

    static void use(Connection client) throws Exception {
        try (PreparedStatement asked = client.prepareStatement(
                "SELECT tiny, whole, price, ratio, name, bytes, day FROM kinds WHERE id < ? ORDER BY id")) {
            asked.setInt(1, 3);
            ResultSet rows = asked.executeQuery();
            check(rows.next(), true);
            check(rows.getInt(1), -128);
            check(rows.getBigDecimal(2), new BigDecimal("18446744073709551615"));
            check(rows.getBigDecimal(3), new BigDecimal("-1234567890.1234"));
            check(rows.getDouble(4), 0.1);
            check(rows.getString(5), "it's \u00e9 \u4e2d \\");
            check(Arrays.equals(rows.getBytes(6), new byte[] {0, -1, 39}), true);
            check(rows.getDate(7).toString(), "2020-02-29");
            check(rows.next(), true);
            check(rows.next(), false);
        }
        try (PreparedStatement asked = client.prepareStatement("SELECT COUNT(*), SUM(amount) FROM fact WHERE day_id IN (?, ?)")) {
            for (int day = 1; day < 4; day++) {
                asked.setInt(1, day);
                asked.setInt(2, day + 1);
                ResultSet rows = asked.executeQuery();
                check(rows.next(), true);
                check(rows.getInt(1), 40);
            }
        }
        try (Statement asked = client.createStatement()) {
            asked.executeQuery("SELECT * FROM none_such");
            throw new AssertionError("there is no such table");
        } catch (SQLException error) {
            check(error.getErrorCode(), 1146);
        }
        client.setAutoCommit(false);
        client.rollback();
        client.setAutoCommit(true);
        client.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        check(client.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
        client.setCatalog("information_schema");
        client.setCatalog("shop");
        check(client.isValid(2), true);
    }

    static void describe(Connection client) throws Exception {
        DatabaseMetaData of = client.getMetaData();
        Set<String> tables = new TreeSet<>();
        for (ResultSet rows = of.getTables("shop", null, "%", new String[] {"TABLE"}); rows.next();) tables.add(rows.getString("TABLE_NAME"));
        check(tables, new TreeSet<>(List.of("fact", "kinds")));
        int columns = 0;
        for (ResultSet rows = of.getColumns("shop", null, "fact", "%"); rows.next();) columns++;
        check(columns, 3);
        ResultSet key = of.getPrimaryKeys("shop", null, "fact");
        check(key.next(), true);
        check(key.getString("COLUMN_NAME"), "id");
        check(of.getIndexInfo("shop", null, "fact", false, false).next(), true);
        // The first statements of DBeaver's connection to MySQL.
        for (String statement : List.of("SELECT DATABASE()", "SHOW ENGINES", "SHOW CHARSET", "SHOW COLLATION", "SHOW PLUGINS",
                "SELECT @@GLOBAL.character_set_server, @@GLOBAL.collation_server", "SHOW DATABASES", "SHOW FULL TABLES FROM `shop`",
                "SHOW TABLE STATUS FROM `shop`", "SHOW CREATE TABLE `shop`.`fact`", "SHOW FULL PROCESSLIST", "SHOW GRANTS",
                "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop' ORDER BY ORDINAL_POSITION", "SHOW WARNINGS",
                "SET SESSION sql_mode = @@SESSION.sql_mode", "SET NAMES utf8mb4")) {
            try (Statement asked = client.createStatement()) {
                asked.execute(statement);
            }
        }
    }
}
"#;

#[test]
fn mysqls_jdbc_driver_works() {
    let driver = cache_directory().unwrap().join("java/mysql-connector-j.jar");
    let Some(bench) = in_check_all(with_users) else { return };
    if !driver.exists() {
        return skip("no JDBC driver: run `tools/install clients`").unwrap_or_default();
    }
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("Client.java");
    std::fs::write(&source, JAVA).unwrap();
    let port = bench.address.port().to_string();
    let client = ["-cp".into(), driver, source, port.into()];
    assert_eq!(printed(Command::new("java").args(&client)), "done\n");
}

#[test]
fn tls_hides_what_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args([&"-keyout".into(), &key, &"-out".into(), &certificate])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("no openssl").unwrap_or_default();
    }
    let with_tls = || {
        bench_with(|settings| {
            settings.tls = Some(tls(&certificate, &key).unwrap());
            settings.users = Users(vec![user("any", "three", Some(Plugin::CachingSha2))]);
        })
    };
    let Some(bench) = in_check_all(with_tls) else { return };
    let told = printed(mariadb(&bench).arg("--ssl").arg("--execute=status"));
    let cipher = told.lines().find(|line| line.starts_with("SSL:")).unwrap();
    assert!(cipher.contains("Cipher in use is TLS_") || cipher.contains("Cipher in use is ECDHE"), "{told}");
    // Without it, too.
    assert_eq!(printed(mariadb(&bench).args(["--skip-ssl", "-e", "SELECT 7"])), "7\n7\n");
}
