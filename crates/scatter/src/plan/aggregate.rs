//! Aggregates in parts: what a fragment computes, and what makes the whole of it.
//!
//! Gray et al., "Data Cube", 1997, tell three kinds apart: distributive aggregates, of which the parts are merged by
//! themselves (SUM, MIN), algebraic ones of a few parts (AVG), and holistic ones, which need all values (COUNT of
//! distinct values). Variances are merged as Chan, Golub and LeVeque do (1983): by count, mean and variance of each
//! part and the mean of the whole, because a sum of squares loses all digits where the mean is large.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, ObjectNamePart, Visit, visit_expressions,
};

use super::Refusal;
use crate::sql::print::{explicit, verbatim};

/// What fragments compute of a query's aggregates.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Names of the columns that fragments ship, and their expressions there.
    pub(super) columns: Vec<(String, String)>,
    /// Arguments of aggregates over distinct values: fragments group by them as well.
    pub(super) distinct: Vec<String>,
    /// Means of whole groups, which variances need: the columns of a part's mean and count.
    pub(super) means: Vec<(String, String)>,
    /// An aggregate needs every row, so fragments aggregate nothing.
    pub(super) are_rows: bool,
}

/// Name of an aggregate call in capital letters. A window function is none.
pub(super) fn aggregate(expression: &Expr) -> Option<(String, &Function)> {
    let Expr::Function(function) = expression else { return None };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let name = name.value.to_ascii_uppercase();
    (function.over.is_none() && KINDS.contains(&name.as_str())).then_some((name, function))
}

const KINDS: [&str; 20] = [
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "ANY_VALUE",
    "APPROX_COUNT_DISTINCT",
];

struct Call<'a> {
    name: &'a str,
    is_distinct: bool,
    /// In the fragment; `*` of `COUNT(*)`.
    arguments: Vec<String>,
    clauses: &'a [FunctionArgumentClause],
}

impl<'a> Call<'a> {
    fn of(name: &'a str, function: &'a Function) -> Result<Call<'a>, Refusal> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(Refusal(format!("{name} has arguments of an unknown form")));
        };
        let argument = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(explicit(expression)),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Ok("*".to_owned()),
            _ => Err(Refusal(format!("{name} has an argument of an unknown form"))),
        };
        Ok(Call {
            name,
            is_distinct: is_distinct(function),
            arguments: list.args.iter().map(argument).collect::<Result<_, _>>()?,
            clauses: &list.clauses,
        })
    }

    fn only_argument(&self) -> Result<&str, Refusal> {
        match self.arguments.as_slice() {
            [argument] => Ok(argument),
            _ => Err(Refusal(format!("{} has {} arguments", self.name, self.arguments.len()))),
        }
    }
}

fn is_distinct(function: &Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
}

/// Whether an aggregate is the list of all its values.
pub(super) fn needs_rows(name: &str, function: &Function) -> bool {
    matches!(name, "GROUP_CONCAT" | "JSON_ARRAYAGG" | "JSON_OBJECTAGG") && !is_distinct(function)
}

/// The argument of a COUNT, if it is one expression and not DISTINCT.
pub(super) fn counted<'a>(name: &str, function: &'a Function) -> Option<&'a Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))]
            if name == "COUNT" && !is_distinct(function) =>
        {
            Some(argument)
        }
        _ => None,
    }
}

/// Whether it makes no difference how often an aggregate has a value.
pub(super) fn is_of_values(name: &str, function: &Function) -> bool {
    matches!(name, "MIN" | "MAX" | "BIT_AND" | "BIT_OR") || is_distinct(function)
}

/// The server computes a quotient with more digits than it shows, and goes on computing with them.
pub(super) fn divides<T: Visit>(tree: &T) -> bool {
    let found = visit_expressions(tree, |inner| match inner {
        Expr::BinaryOp { op: BinaryOperator::Divide, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

impl Parts {
    /// The column of an expression.
    pub(super) fn column(&mut self, expression: &str) -> String {
        if let Some((name, _)) = self.columns.iter().find(|(_, known)| known == expression) {
            return name.clone();
        }
        let name = format!("c{}", self.columns.len());
        self.columns.push((name.clone(), expression.to_owned()));
        name
    }

    /// The expression over shipped columns that has the value of this call over everything.
    pub(super) fn finalize(&mut self, name: &str, function: &Function) -> Result<Expr, Refusal> {
        let call = Call::of(name, function)?;
        if (name != "COUNT" || call.is_distinct) && divides(function) {
            return Err(Refusal(format!(
                "{name} is of quotients, of whose digits a fragment would round some"
            )));
        }
        let text = match name {
            "APPROX_COUNT_DISTINCT" => return Err(Refusal(format!("{name} cannot be merged"))),
            _ if self.are_rows || call.is_distinct => self.over_values(&call),
            "COUNT" => return Ok(self.count(call.only_argument()?)),
            "AVG" => {
                let argument = call.only_argument()?;
                let sum = self.column(&format!("SUM({argument})"));
                let count = self.column(&format!("COUNT({argument})"));
                format!("(SUM({sum}) / SUM({count}))")
            }
            "SUM" | "MIN" | "MAX" | "BIT_AND" | "BIT_OR" | "BIT_XOR" | "ANY_VALUE" => {
                let column = self.column(&format!("{name}({})", call.only_argument()?));
                format!("{name}({column})")
            }
            _ => self.variance(&call)?,
        };
        Ok(verbatim(text))
    }

    /// The number of rows in which this is not NULL; `*` for all rows.
    pub(super) fn count(&mut self, argument: &str) -> Expr {
        let count = self.column(&format!("COUNT({argument})"));
        verbatim(format!("CAST(COALESCE(SUM({count}), 0) AS SIGNED)"))
    }

    /// The call itself over the values of its arguments: each row's, or each distinct value once for each fragment.
    fn over_values(&mut self, call: &Call<'_>) -> String {
        let columns: Vec<String> = call.arguments.iter().map(|argument| self.value(argument)).collect();
        let mut clauses = String::new();
        for clause in call.clauses {
            clauses += &match clause {
                FunctionArgumentClause::OrderBy(order) => {
                    // A number is the position of an argument.
                    let at_position = |text: &str| columns.get(text.parse::<usize>().ok()?.checked_sub(1)?);
                    let by = order.iter().map(|by| {
                        let text = explicit(&by.expr);
                        let column = at_position(&text).cloned().unwrap_or_else(|| self.value(&text));
                        format!("{column}{}", by.options)
                    });
                    format!(" ORDER BY {}", by.collect::<Vec<_>>().join(", "))
                }
                other => format!(" {}", explicit(other)),
            };
        }
        let distinct = if call.is_distinct { "DISTINCT " } else { "" };
        format!("{}({distinct}{}{clauses})", call.name, columns.join(", "))
    }

    fn value(&mut self, expression: &str) -> String {
        if expression == "*" {
            return "*".to_owned();
        }
        if !self.are_rows && !self.distinct.iter().any(|known| known == expression) {
            self.distinct.push(expression.to_owned());
        }
        self.column(expression)
    }

    /// Of the population: the mean of the parts' variances and of the squares of their means' distances from the
    /// whole mean, which is in a table of its own.
    fn variance(&mut self, call: &Call<'_>) -> Result<String, Refusal> {
        let argument = call.only_argument()?;
        let count = self.column(&format!("COUNT({argument})"));
        // Of a number that is not floating, the server shows four digits more than it has.
        let mean = self.column(&format!("AVG({argument} + 0e0)"));
        let variance = self.column(&format!("VAR_POP({argument} + 0e0)"));
        let pair = (mean.clone(), count.clone());
        let index = self.means.iter().position(|known| *known == pair).unwrap_or_else(|| {
            self.means.push(pair);
            self.means.len() - 1
        });
        let distance = format!("({mean} - m{index})");
        let squares = format!("SUM({count} * ({variance} + {distance} * {distance}))");
        let population = format!("({squares} / SUM({count}))");
        let sample = format!("({squares} / NULLIF(SUM({count}) - 1, 0))");
        Ok(match call.name {
            "VAR_POP" | "VARIANCE" => population,
            "VAR_SAMP" => sample,
            "STDDEV_SAMP" => format!("SQRT({sample})"),
            _ => format!("SQRT({population})"),
        })
    }
}
