//! The Stock-Level transaction (clause 2.8): counts the items of the last twenty orders whose stock is low.

use super::input::StockLevel;
use super::{End, Terminal, missing};
use crate::sql::SqlError;
use crate::values;

const ORDERS: u32 = 20;

impl Terminal {
    pub(super) fn stock_level(&mut self, level: &StockLevel) -> Result<End, SqlError> {
        let StockLevel { warehouse, district, threshold } = level;
        let next: Option<(u32,)> =
            self.session.first(self.statements.district_next_order, values![warehouse, district])?;
        let (next,) = next.ok_or_else(|| missing(format!("district {district} of warehouse {warehouse}")))?;
        let low: Option<(u64,)> = self
            .session
            .first(self.statements.low_stock, values![warehouse, district, next - ORDERS, next, threshold])?;
        std::hint::black_box(low);
        Ok(End::Commit)
    }
}
