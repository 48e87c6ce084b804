//! The five tables of the benchmark.

use crate::sql::{Dialect, Engine};

pub(super) const TABLES: [(&str, &str); 5] = [
    (
        "date",
        "d_datekey INTEGER NOT NULL PRIMARY KEY, d_date VARCHAR(20) NOT NULL, d_dayofweek VARCHAR(10) NOT NULL, d_month VARCHAR(10) NOT NULL, d_year INTEGER NOT NULL, d_yearmonthnum INTEGER NOT NULL, d_yearmonth VARCHAR(10) NOT NULL, d_daynuminweek INTEGER NOT NULL, d_daynuminmonth INTEGER NOT NULL, d_daynuminyear INTEGER NOT NULL, d_monthnuminyear INTEGER NOT NULL, d_weeknuminyear INTEGER NOT NULL, d_sellingseason VARCHAR(20) NOT NULL, d_lastdayinweekfl INTEGER NOT NULL, d_lastdayinmonthfl INTEGER NOT NULL, d_holidayfl INTEGER NOT NULL, d_weekdayfl INTEGER NOT NULL",
    ),
    (
        "customer",
        "c_custkey INTEGER NOT NULL PRIMARY KEY, c_name VARCHAR(30) NOT NULL, c_address VARCHAR(40) NOT NULL, c_city VARCHAR(20) NOT NULL, c_nation VARCHAR(20) NOT NULL, c_region VARCHAR(20) NOT NULL, c_phone VARCHAR(20) NOT NULL, c_mktsegment VARCHAR(20) NOT NULL",
    ),
    (
        "supplier",
        "s_suppkey INTEGER NOT NULL PRIMARY KEY, s_name VARCHAR(30) NOT NULL, s_address VARCHAR(40) NOT NULL, s_city VARCHAR(20) NOT NULL, s_nation VARCHAR(20) NOT NULL, s_region VARCHAR(20) NOT NULL, s_phone VARCHAR(20) NOT NULL",
    ),
    (
        "part",
        "p_partkey INTEGER NOT NULL PRIMARY KEY, p_name VARCHAR(30) NOT NULL, p_mfgr VARCHAR(10) NOT NULL, p_category VARCHAR(10) NOT NULL, p_brand1 VARCHAR(10) NOT NULL, p_color VARCHAR(20) NOT NULL, p_type VARCHAR(30) NOT NULL, p_size INTEGER NOT NULL, p_container VARCHAR(10) NOT NULL",
    ),
    (
        LINEORDER,
        "lo_orderkey BIGINT NOT NULL, lo_linenumber INTEGER NOT NULL, lo_custkey INTEGER NOT NULL, lo_partkey INTEGER NOT NULL, lo_suppkey INTEGER NOT NULL, lo_orderdate INTEGER NOT NULL, lo_orderpriority VARCHAR(20) NOT NULL, lo_shippriority VARCHAR(1) NOT NULL, lo_quantity INTEGER NOT NULL, lo_extendedprice INTEGER NOT NULL, lo_ordtotalprice INTEGER NOT NULL, lo_discount INTEGER NOT NULL, lo_revenue INTEGER NOT NULL, lo_supplycost INTEGER NOT NULL, lo_tax INTEGER NOT NULL, lo_commitdate INTEGER NOT NULL, lo_shipmode VARCHAR(10) NOT NULL, PRIMARY KEY (lo_orderkey, lo_linenumber)",
    ),
];
pub(super) const LINEORDER: &str = "lineorder";

/// Drops and creates all tables.
pub(super) fn create(dialect: Dialect, engine: Option<Engine>) -> impl Iterator<Item = String> {
    TABLES.into_iter().flat_map(move |(table, columns)| {
        let create = dialect.create_table_in(&format!("CREATE TABLE {table} ({columns})"), engine);
        [format!("DROP TABLE IF EXISTS {table}"), create]
    })
}
