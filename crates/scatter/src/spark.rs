//! A plan as Spark SQL: each fragment a view over JDBC, and one SELECT over their union. Spark runs it on a cluster, where
//! the partial results of many servers find room.
//!
//! Spark's own rules then hold for the merge: texts are equal only if their bytes are, a decimal has at most 38 digits,
//! a quotient has more of them than a server gives it, and a comparison is true or false rather than 1 or 0. Sources: Spark SQL Guide, "JDBC To Other Databases" and "ANSI
//! Compliance".

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, LimitClause, ObjectName,
    ObjectNamePart, Offset, OffsetRows, Query, VisitMut, VisitorMut, visit_relations,
};

use crate::execute::Assigned;
use crate::plan::{Plan, Refusal};
use crate::servers::Server;
use crate::sql::parse;
use crate::sql::print::{explicit, quoted, text_literal};

/// What is said with each script.
pub const LIMITS: &str = "\
-- Spark merges by its own rules: texts are equal only if their bytes are (no collations), a decimal has at most 38 digits,
-- a quotient has more of them, and a comparison is true or false. The passwords are taken from the environment variable MYSQL_PWD.";

/// # Errors
/// What the merge does that Spark cannot.
pub fn script(plan: &Plan, assigned: &[Assigned], servers: &[Server]) -> Result<String, Refusal> {
    let mut text = format!("{LIMITS}\nSET spark.sql.ansi.enabled = false;\n");
    for (index, block) in plan.blocks.iter().enumerate() {
        if block.ships_rows() {
            return Err(Refusal(
                "its fragments return all their rows, which Spark reads better by itself".to_owned(),
            ));
        }
        let mut views = Vec::new();
        for Assigned { server, split, .. } in assigned.iter().filter(|assigned| assigned.block == index) {
            for part in &split.parts {
                let name = format!("{}_{}", block.table, views.len() + 1);
                text += &view(&name, &servers[*server], "query", &block.fragment(part));
                views.push(format!("SELECT * FROM {name}"));
            }
        }
        text += &temporary(&block.table, &views.join(" UNION ALL "));
        for statement in block.before_merge() {
            let (name, query) = created(statement)?;
            text += &temporary(name, &translated(query)?);
        }
    }
    let merge = parse(&plan.merge).map_err(Refusal)?;
    for table in other_tables(&merge, plan) {
        text += &view(&table, &servers[0], "dbtable", &quoted(&table));
    }
    text += &format!("{};\n", translated(&plan.merge)?);
    Ok(text)
}

fn temporary(name: &str, query: &str) -> String {
    format!("CREATE OR REPLACE TEMPORARY VIEW {name} AS {query};\n")
}

/// A view of what a server answers.
fn view(name: &str, server: &Server, what: &str, of: &str) -> String {
    let options = &server.options;
    let url = format!(
        "jdbc:mysql://{}:{}/{}",
        options.get_ip_or_hostname(),
        options.get_tcp_port(),
        options.get_db_name().unwrap_or_default()
    );
    let user = options.get_user().unwrap_or("root");
    format!(
        "CREATE OR REPLACE TEMPORARY VIEW {} USING jdbc OPTIONS (url {}, user {}, password '${{env:MYSQL_PWD}}', {what} {});\n",
        quoted(name),
        text_literal(&url),
        text_literal(user),
        text_literal(of)
    )
}

/// Name and query of a statement that makes a table of means.
fn created(statement: &str) -> Result<(&str, &str), Refusal> {
    let rest = statement.strip_prefix("CREATE TEMPORARY TABLE ");
    rest.and_then(|rest| rest.split_once(" AS "))
        .ok_or_else(|| Refusal(format!("its merge begins with {statement}")))
}

/// Tables that a merge joins to groups: dimensions, which the first server has whole.
fn other_tables(merge: &Query, plan: &Plan) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let _: ControlFlow<()> = visit_relations(merge, |name: &ObjectName| {
        if let Some(ObjectNamePart::Identifier(name)) = name.0.last() {
            let is_own = plan.blocks.iter().any(|block| name.value.starts_with(&block.table));
            if !is_own && !found.contains(&name.value) {
                found.push(name.value.clone());
            }
        }
        ControlFlow::Continue(())
    });
    found
}

/// A query in Spark's words.
fn translated(text: &str) -> Result<String, Refusal> {
    let mut query = parse(text).map_err(Refusal)?;
    match query.visit(&mut Words) {
        ControlFlow::Break(refusal) => Err(refusal),
        ControlFlow::Continue(()) => Ok(explicit(&query)),
    }
}

struct Words;

impl VisitorMut for Words {
    type Break = Refusal;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        if let Some(LimitClause::OffsetCommaLimit { offset, limit }) = &query.limit_clause {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(limit.clone()),
                offset: Some(Offset { value: offset.clone(), rows: OffsetRows::None }),
                limit_by: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Refusal> {
        match expression {
            Expr::Cast { kind: CastKind::Cast, data_type, .. } => match data_type {
                DataType::Signed | DataType::SignedInteger => *data_type = DataType::BigInt(None),
                DataType::Unsigned | DataType::UnsignedInteger => {
                    *data_type = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(20, 0));
                }
                _ => {}
            },
            Expr::BinaryOp { op: BinaryOperator::Xor, .. } => {
                return ControlFlow::Break(Refusal(
                    "its merge has XOR, which Spark does not know".to_owned(),
                ));
            }
            Expr::Function(function) => return check_function(function),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn check_function(function: &Function) -> ControlFlow<Refusal> {
    const UNKNOWN: [&str; 4] = ["GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "STR_TO_DATE"];
    let name = function.name.to_string().to_ascii_uppercase();
    match UNKNOWN.contains(&name.as_str()) {
        true => ControlFlow::Break(Refusal(format!("its merge calls {name}, which Spark does not know"))),
        false => ControlFlow::Continue(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(translated(text).unwrap_or_else(|Refusal(why)| why), expect);
    }

    #[test]
    fn a_merge_is_written_in_sparks_words() {
        check(
            "SELECT CAST(COALESCE(SUM(c0), 0) AS SIGNED) AS `n` FROM spindle_1",
            "SELECT CAST(COALESCE(SUM(c0), 0) AS BIGINT) AS `n` FROM spindle_1",
        );
        check("SELECT c0 FROM t ORDER BY c0 LIMIT 5, 7", "SELECT c0 FROM t ORDER BY c0 LIMIT 7 OFFSET 5");
        check("SELECT a XOR b FROM t", "its merge has XOR, which Spark does not know");
        check("SELECT GROUP_CONCAT(a) FROM t", "its merge calls GROUP_CONCAT, which Spark does not know");
    }

    #[test]
    fn a_fragment_is_a_view_over_jdbc() {
        let options = mysql::OptsBuilder::new().ip_or_hostname(Some("10.0.0.1")).tcp_port(3307);
        let options = options.db_name(Some("flights")).user(Some("me"));
        let server = Server { name: "a".to_owned(), options: options.into() };
        assert_eq!(
            view("spindle_1_1", &server, "query", r"SELECT 'it\'s'"),
            "CREATE OR REPLACE TEMPORARY VIEW `spindle_1_1` USING jdbc OPTIONS (url 'jdbc:mysql://10.0.0.1:3307/flights', \
             user 'me', password '${env:MYSQL_PWD}', query 'SELECT \\'it\\\\\\'s\\'');\n"
        );
    }
}
