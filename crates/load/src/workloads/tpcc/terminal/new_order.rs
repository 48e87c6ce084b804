//! The New-Order transaction (clause 2.4).

use super::input::{Line, NewOrder};
use super::statements::MAXIMUM_LINES;
use super::{End, Terminal, missing};
use crate::sql::{SqlError, Value};
use crate::values;

/// Discount, last name and credit of the customer; tax of the warehouse and of the district.
type Head = (f64, Vec<u8>, Vec<u8>, f64, f64);

/// The data of a line whose item exists.
#[derive(Debug)]
struct PricedLine<'a> {
    number: usize,
    line: &'a Line,
    amount_cents: i64,
    district_info: Vec<u8>,
}

/// Lines that one UPDATE of the stock can change: one warehouse, distinct items.
#[derive(Debug, PartialEq)]
struct StockGroup {
    warehouse: u32,
    /// (index of the line, item), by item.
    lines: Vec<(usize, u32)>,
}

impl Terminal {
    pub(super) fn new_order(&mut self, order: &NewOrder) -> Result<End, SqlError> {
        let NewOrder { warehouse, district, customer, lines } = order;
        let head: Option<Head> =
            self.session.first(self.statements.new_order_head, values![warehouse, district, customer])?;
        let (discount, _last_name, _credit, warehouse_tax, district_tax) =
            head.ok_or_else(|| missing(format!("customer {customer} of {warehouse}/{district}")))?;

        let order_id = self.next_order_id(*warehouse, *district)?;

        let all_local = lines.iter().all(|line| line.supply_warehouse == *warehouse);
        self.session.run(
            self.statements.order_insert,
            values![warehouse, district, order_id, customer, lines.len(), all_local],
        )?;
        self.session.run(self.statements.new_order_insert, values![warehouse, district, order_id])?;

        let prices = self.prices(lines)?;
        let known: Vec<(usize, &Line)> =
            lines.iter().enumerate().filter(|(index, _)| prices[*index].is_some()).collect();
        let district_infos = self.take_from_stock(*warehouse, *district, &known)?;

        let priced: Vec<PricedLine> = known
            .iter()
            .zip(district_infos)
            .map(|((index, line), district_info)| PricedLine {
                number: index + 1,
                line,
                amount_cents: prices[*index].unwrap_or(0) * i64::from(line.quantity),
                district_info,
            })
            .collect();
        let total_cents: i64 = priced.iter().map(|line| line.amount_cents).sum();
        self.insert_lines(*warehouse, *district, order_id, &priced)?;

        // The total on the screen (2.4.3.3).
        std::hint::black_box(total_cents as f64 * (1.0 - discount) * (1.0 + warehouse_tax + district_tax));
        // Clause 2.4.2.3: an unused item number rolls back after the work for all other lines.
        Ok(if known.len() == lines.len() { End::Commit } else { End::Rollback })
    }

    /// Returns the district's next order number and advances it.
    fn next_order_id(&mut self, warehouse: u32, district: u32) -> Result<u32, SqlError> {
        let advance = self.statements.district_advance;
        let key = values![warehouse, district];
        let taken = if self.session.dialect().has_returning() {
            self.session.first(advance, key)?.map(|(order_id,)| order_id)
        } else {
            (self.session.run(advance, key)? > 0).then(|| self.session.last_insert_id() as u32)
        };
        taken.ok_or_else(|| missing(format!("district {district} of warehouse {warehouse}")))
    }

    /// The price of each line's item in cents; `None` where the item does not exist.
    fn prices(&mut self, lines: &[Line]) -> Result<Vec<Option<i64>>, SqlError> {
        let mut items: Vec<Value> = lines.iter().map(|line| line.item.into()).collect();
        pad(&mut items, 1, MAXIMUM_LINES);
        let found: Vec<(u32, i64, Vec<u8>, bool)> = self.session.rows(self.statements.items, &items)?;
        let price = |item| found.iter().find(|row| row.0 == item).map(|row| row.1);
        Ok(lines.iter().map(|line| price(line.item)).collect())
    }

    /// Locks and updates the stock of every line, in key order; returns S_DIST_xx of each line.
    fn take_from_stock(
        &mut self,
        home: u32,
        district: u32,
        lines: &[(usize, &Line)],
    ) -> Result<Vec<Vec<u8>>, SqlError> {
        let mut district_infos = vec![Vec::new(); lines.len()];
        for group in stock_groups(lines) {
            let mut parameters: Vec<Value> = Vec::with_capacity(MAXIMUM_LINES + 1);
            parameters.push(group.warehouse.into());
            parameters.extend(group.lines.iter().map(|(_, item)| Value::from(*item)));
            pad(&mut parameters, 1, MAXIMUM_LINES + 1);
            let select = self.statements.stock_for_update[district as usize - 1];
            let rows: Vec<(u32, i32, Vec<u8>, bool)> = self.session.rows(select, &parameters)?;

            let (mut quantities, mut year_to_date, mut items) = (Vec::new(), Vec::new(), Vec::new());
            for (index, item) in &group.lines {
                let (_, in_stock, district_info, _original) = rows
                    .iter()
                    .find(|row| row.0 == *item)
                    .ok_or_else(|| missing(format!("stock of item {item}, warehouse {}", group.warehouse)))?;
                let ordered = lines[*index].1.quantity;
                district_infos[*index] = district_info.clone();
                quantities.extend([Value::from(*item), restocked(*in_stock, ordered as i32).into()]);
                year_to_date.extend([Value::from(*item), ordered.into()]);
                items.push(Value::from(*item));
            }
            pad(&mut quantities, 2, MAXIMUM_LINES * 2);
            pad(&mut year_to_date, 2, MAXIMUM_LINES * 2);
            pad(&mut items, 1, MAXIMUM_LINES);
            let mut parameters = quantities;
            parameters.append(&mut year_to_date);
            parameters.extend([Value::from(group.warehouse != home), group.warehouse.into()]);
            parameters.append(&mut items);
            self.session.run(self.statements.stock_update, &parameters)?;
        }
        Ok(district_infos)
    }

    fn insert_lines(
        &mut self,
        warehouse: u32,
        district: u32,
        order_id: u32,
        lines: &[PricedLine],
    ) -> Result<(), SqlError> {
        let mut parameters: Vec<Value> = Vec::with_capacity(lines.len() * 9);
        for PricedLine { number, line, amount_cents, district_info } in lines {
            parameters.extend([
                warehouse.into(),
                district.into(),
                order_id.into(),
                (*number).into(),
                line.item.into(),
                line.supply_warehouse.into(),
                line.quantity.into(),
                (*amount_cents).into(),
                Value::Text(district_info.clone()),
            ]);
        }
        self.session.run(self.statements.order_line_insert[lines.len()], &parameters)?;
        Ok(())
    }
}

/// Clause 2.4.2.2: 91 are added to stock that would fall below ten.
fn restocked(in_stock: i32, ordered: i32) -> i32 {
    if in_stock >= ordered + 10 { in_stock - ordered } else { in_stock - ordered + 91 }
}

/// Sorts the lines by (warehouse, item), so that terminals lock rows in the same order. The second line of an
/// item goes to a second group, because one UPDATE changes a row once.
fn stock_groups(lines: &[(usize, &Line)]) -> Vec<StockGroup> {
    let mut sorted: Vec<(u32, u32, usize)> = lines
        .iter()
        .enumerate()
        .map(|(index, (_, line))| (line.supply_warehouse, line.item, index))
        .collect();
    sorted.sort_unstable();
    let mut groups: Vec<StockGroup> = Vec::new();
    let mut again: Vec<StockGroup> = Vec::new();
    for (warehouse, item, index) in sorted {
        match groups.last_mut().filter(|group| group.warehouse == warehouse) {
            Some(group) if group.lines.last().is_some_and(|(_, last)| *last == item) => {
                again.push(StockGroup { warehouse, lines: vec![(index, item)] });
            }
            Some(group) => group.lines.push((index, item)),
            None => groups.push(StockGroup { warehouse, lines: vec![(index, item)] }),
        }
    }
    groups.append(&mut again);
    groups
}

/// Repeats the last `unit` values up to `length` values.
pub(super) fn pad(values: &mut Vec<Value>, unit: usize, length: usize) {
    let start = values.len() - unit;
    while values.len() < length {
        values.extend_from_within(start..start + unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[(u32, u32)], expect: &[(u32, &[(usize, u32)])]) {
        let lines: Vec<Line> = lines
            .iter()
            .map(|(supply_warehouse, item)| Line {
                item: *item,
                supply_warehouse: *supply_warehouse,
                quantity: 1,
            })
            .collect();
        let indexed: Vec<(usize, &Line)> = lines.iter().enumerate().collect();
        let expect: Vec<StockGroup> = expect
            .iter()
            .map(|(warehouse, lines)| StockGroup { warehouse: *warehouse, lines: lines.to_vec() })
            .collect();
        assert_eq!(stock_groups(&indexed), expect);
    }

    #[test]
    fn stock_is_locked_in_key_order() {
        check(&[(1, 9), (1, 3), (2, 1), (1, 5)], &[(1, &[(1, 3), (3, 5), (0, 9)]), (2, &[(2, 1)])]);
    }

    #[test]
    fn an_item_ordered_twice_is_updated_twice() {
        check(&[(1, 3), (1, 5), (1, 3)], &[(1, &[(0, 3), (1, 5)]), (1, &[(2, 3)])]);
    }

    #[test]
    fn low_stock_is_filled_up() {
        assert_eq!(restocked(20, 10), 10);
        assert_eq!(restocked(19, 10), 100);
        assert_eq!(restocked(10, 1), 100);
    }

    #[test]
    fn padding_repeats_the_last_entry() {
        let mut values: Vec<Value> = [1_u32, 2, 3, 4].map(Value::from).to_vec();
        pad(&mut values, 2, 8);
        assert_eq!(values, [1_u32, 2, 3, 4, 3, 4, 3, 4].map(Value::from));
    }
}
