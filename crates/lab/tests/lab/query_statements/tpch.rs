//! TPC-H at a hundredth of its smallest scale. Orders and their lines are sharded by the order.

use std::fmt::Display;

use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_load::workload::analytic::queries;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;

use super::{Star, outcome};
use crate::in_check_all;

const SCALE: f64 = 0.01;

/// As in the specification, with indexes on the foreign keys.
const SCHEMA: [&str; 8] = [
    "CREATE TABLE region (r_regionkey INT PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152))",
    "CREATE TABLE nation (n_nationkey INT PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INT NOT NULL, \
     n_comment VARCHAR(152), KEY (n_regionkey))",
    "CREATE TABLE part (p_partkey INT PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, \
     p_brand CHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL, \
     p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL)",
    "CREATE TABLE supplier (s_suppkey INT PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, \
     s_nationkey INT NOT NULL, s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, \
     s_comment VARCHAR(101) NOT NULL, KEY (s_nationkey))",
    "CREATE TABLE partsupp (ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, \
     ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey), \
     KEY (ps_suppkey))",
    "CREATE TABLE customer (c_custkey INT PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, \
     c_nationkey INT NOT NULL, c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, \
     c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL, KEY (c_nationkey))",
    "CREATE TABLE orders (o_orderkey INT PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus CHAR(1) NOT NULL, \
     o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, \
     o_clerk CHAR(15) NOT NULL, o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL, KEY (o_custkey), \
     KEY (o_orderdate))",
    "CREATE TABLE lineitem (l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, \
     l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, \
     l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, \
     l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, \
     l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL, \
     PRIMARY KEY (l_orderkey, l_linenumber), KEY (l_partkey, l_suppkey), KEY (l_shipdate))",
];

/// A row is printed with a bar behind each value.
fn insert(connection: &mut Conn, table: &str, rows: impl Iterator<Item = impl Display>) {
    let value = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let row = |row: String| {
        let values: Vec<String> = row.trim_end_matches('|').split('|').map(value).collect();
        format!("({})", values.join(","))
    };
    let rows: Vec<String> = rows.map(|printed| row(printed.to_string())).collect();
    for some in rows.chunks(1_000) {
        connection.query_drop(format!("INSERT INTO {table} VALUES {}", some.join(","))).unwrap();
    }
}

fn load(connection: &mut Conn) {
    // The default pool takes seconds and 300 MB.
    let all = Distributions::static_default();
    let texts = &TextPool::new(1 << 20, all);
    SCHEMA.iter().for_each(|statement| connection.query_drop(statement).unwrap());
    let regions = RegionGenerator::new_with_distributions_and_text_pool(all, texts);
    insert(connection, "region", regions.iter());
    let nations = NationGenerator::new_with_distributions_and_text_pool(all, texts);
    insert(connection, "nation", nations.iter());
    let parts = PartGenerator::new_with_distributions_and_text_pool(SCALE, 1, 1, all, texts);
    insert(connection, "part", parts.iter());
    let suppliers = SupplierGenerator::new_with_distributions_and_text_pool(SCALE, 1, 1, all, texts);
    insert(connection, "supplier", suppliers.iter());
    let supplies = PartSuppGenerator::new_with_text_pool(SCALE, 1, 1, texts);
    insert(connection, "partsupp", supplies.iter());
    let customers = CustomerGenerator::new_with_distributions_and_text_pool(SCALE, 1, 1, all, texts);
    insert(connection, "customer", customers.iter());
    let orders = OrderGenerator::new_with_distributions_and_text_pool(SCALE, 1, 1, all, texts);
    insert(connection, "orders", orders.iter());
    let lines = LineItemGenerator::new_with_distributions_and_text_pool(SCALE, 1, 1, all, texts);
    insert(connection, "lineitem", lines.iter());
    let _: Vec<mysql::Row> = connection
        .query("ANALYZE TABLE region, nation, part, supplier, partsupp, customer, orders, lineitem")
        .unwrap();
}

fn loaded() -> Option<Star> {
    let star = Star::empty()?;
    let mut connection = star.database("").connect().unwrap();
    connection.query_drop(format!("CREATE DATABASE {}", star.database)).unwrap();
    load(&mut star.direct());
    Some(star)
}

#[test]
fn each_statement_has_one_servers_answer_or_the_reason_is_told() {
    let Some(star) = in_check_all(loaded) else { return };
    let mut direct = star.direct();
    let sharded = [("lineitem", "l_orderkey"), ("orders", "o_orderkey")];
    let mut ways = [star.whole(), star.shards(&sharded, 2), star.shards(&sharded, 3)];
    let mut refused = String::new();
    for query in queries(include_str!("tpch.sql")) {
        let [one, two, three] = ways.each_mut().map(|scatter| outcome(&mut direct, scatter, &query));
        // What a server splits depends on its estimates of the day.
        assert!(!one.starts_with("refused"), "{}: {one}", query.name);
        match two.strip_prefix("refused: this is not answered over several servers, because ") {
            Some(why) => {
                assert_eq!(two, three, "{}", query.name);
                refused += &format!("{}: {why}\n", query.name);
            }
            None => assert!(!three.starts_with("refused"), "{}: {three}", query.name),
        }
    }
    insta::assert_snapshot!(refused, @r"
    Q4: a subquery reads the sharded table lineitem
    Q13: an outer join puts NULLs in the place of rows of orders that another server may have
    Q15: a subquery reads the sharded table lineitem
    Q17: a subquery reads the sharded table lineitem
    Q20: a subquery reads the sharded table lineitem
    Q21: a subquery reads the sharded table lineitem
    Q22: a subquery reads the sharded table orders
    ");
}
