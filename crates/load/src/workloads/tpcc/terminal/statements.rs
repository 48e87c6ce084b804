//! Every statement of the five transactions, prepared once per terminal.
//!
//! Lists are padded to their longest form by repeating the last entry where the result stays the same (IN,
//! OR, CASE), so that one prepared statement serves every length. Only the multi-row INSERT has one statement
//! per line count.

use super::super::DISTRICTS;
use crate::sql::{Session, SqlError, Statement};

/// Lines of the longest order.
pub(super) const MAXIMUM_LINES: usize = 15;

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) customer_by_name: Statement,
    pub(super) new_order_head: Statement,
    pub(super) district_advance: Statement,
    pub(super) order_insert: Statement,
    pub(super) new_order_insert: Statement,
    pub(super) items: Statement,
    /// One per district, because every district has its own column S_DIST_xx.
    pub(super) stock_for_update: Vec<Statement>,
    pub(super) stock_update: Statement,
    /// One per line count; the first (zero lines) is unused.
    pub(super) order_line_insert: Vec<Statement>,
    pub(super) payment_head: Statement,
    /// Also changes the district where one UPDATE can change two tables.
    pub(super) warehouse_pay: Statement,
    pub(super) district_pay: Option<Statement>,
    pub(super) customer_pay: Statement,
    pub(super) customer_after_payment: Statement,
    pub(super) history_insert: Statement,
    pub(super) customer_balance: Statement,
    pub(super) last_order: Statement,
    pub(super) order_lines: Statement,
    pub(super) oldest_new_order: Statement,
    /// The same without a lock, where the locking SELECT may overlook rows.
    pub(super) oldest_new_order_unlocked: Option<Statement>,
    pub(super) new_orders_delete: Statement,
    pub(super) delivered_customers: Statement,
    pub(super) delivered_orders_update: Statement,
    pub(super) delivered_amounts: Statement,
    pub(super) delivered_lines_update: Statement,
    pub(super) delivered_customers_update: Statement,
    pub(super) district_next_order: Statement,
    pub(super) low_stock: Statement,
}

impl Statements {
    pub(super) fn prepare(session: &mut dyn Session) -> Result<Statements, SqlError> {
        let dialect = session.dialect();
        let mut prepare = |text: &str| session.prepare(text);
        let item_list = repeat("?", ", ", MAXIMUM_LINES);
        let case = |count| repeat(&format!("WHEN ? THEN {}", dialect.integer()), " ", count);
        let item_cases = case(MAXIMUM_LINES);
        let lock = dialect.for_update();
        // An amount of money, from a parameter in cents.
        let cents = "? * 0.01";
        let oldest_new_order =
            "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1";
        let original = "CASE WHEN s_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END";
        let orders_of = |prefix: &str| {
            let order = format!("({prefix}_d_id = ? AND {prefix}_o_id = ?)");
            format!("{prefix}_w_id = ? AND ({})", repeat(&order, " OR ", DISTRICTS as usize))
        };
        let by_key = dialect.by_primary_key();
        // The orders table names its key o_id, without the second prefix.
        let orders_in_orders = orders_of("o").replace("o_o_id", "o_id");

        Ok(Statements {
            customer_by_name: prepare(
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
            )?,
            new_order_head: prepare(
                "SELECT c_discount, c_last, c_credit, w_tax, d_tax FROM warehouse, district, customer \
                 WHERE w_id = ? AND d_w_id = w_id AND d_id = ? AND c_w_id = d_w_id AND c_d_id = d_id AND c_id = ?",
            )?,
            // Takes the order number and advances it in one round trip.
            district_advance: prepare(match dialect.has_returning() {
                true => {
                    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? \
                     RETURNING d_next_o_id - 1"
                }
                false => {
                    "UPDATE district SET d_next_o_id = LAST_INSERT_ID(d_next_o_id) + 1 \
                     WHERE d_w_id = ? AND d_id = ?"
                }
            })?,
            order_insert: prepare(
                "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)",
            )?,
            new_order_insert: prepare("INSERT INTO new_orders (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)")?,
            items: prepare(&format!(
                "SELECT i_id, {}, i_name, CASE WHEN i_data LIKE '%ORIGINAL%' THEN 1 ELSE 0 END FROM item \
                 WHERE i_id IN ({item_list})",
                dialect.as_cents("i_price")
            ))?,
            stock_for_update: (1..=DISTRICTS)
                .map(|district| {
                    prepare(&format!(
                        "SELECT s_i_id, s_quantity, s_dist_{district:02}, {original} FROM stock{by_key} \
                         WHERE s_w_id = ? AND s_i_id IN ({item_list}){lock}"
                    ))
                })
                .collect::<Result<_, _>>()?,
            stock_update: prepare(&format!(
                "UPDATE stock{by_key} SET s_quantity = CASE s_i_id {item_cases} END, \
                 s_ytd = s_ytd + CASE s_i_id {item_cases} END, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id IN ({item_list})"
            ))?,
            order_line_insert: (0..=MAXIMUM_LINES)
                .map(|count| {
                    prepare(&format!(
                        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
                         ol_quantity, ol_amount, ol_dist_info) VALUES {}",
                        repeat(&format!("(?, ?, ?, ?, ?, ?, ?, {cents}, ?)"), ", ", count.max(1))
                    ))
                })
                .collect::<Result<_, _>>()?,
            payment_head: prepare(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip, d_name, d_street_1, d_street_2, d_city, \
                 d_state, d_zip FROM warehouse, district WHERE w_id = ? AND d_w_id = w_id AND d_id = ?",
            )?,
            warehouse_pay: prepare(&match dialect.updates_several_tables() {
                true => format!(
                    "UPDATE warehouse, district SET w_ytd = w_ytd + {cents}, d_ytd = d_ytd + {cents} \
                     WHERE w_id = ? AND d_w_id = w_id AND d_id = ?"
                ),
                false => format!("UPDATE warehouse SET w_ytd = w_ytd + {cents} WHERE w_id = ?"),
            })?,
            district_pay: match dialect.updates_several_tables() {
                true => None,
                false => Some(prepare(&format!(
                    "UPDATE district SET d_ytd = d_ytd + {cents} WHERE d_w_id = ? AND d_id = ?"
                ))?),
            },
            customer_pay: prepare(&format!(
                "UPDATE customer SET c_balance = c_balance - {cents}, c_ytd_payment = c_ytd_payment + {cents}, \
                 c_payment_cnt = c_payment_cnt + 1, \
                 c_data = CASE WHEN c_credit = 'BC' THEN SUBSTR({}, 1, 500) ELSE c_data END \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                dialect.before("c_data")
            ))?,
            customer_after_payment: prepare(
                "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
                 c_credit, c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN SUBSTR(c_data, 1, 200) ELSE '' END \
                 FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            history_insert: prepare(&format!(
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, {cents}, ?)"
            ))?,
            customer_balance: prepare(
                "SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            last_order: prepare(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1",
            )?,
            order_lines: prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )?,
            oldest_new_order: prepare(&format!("{oldest_new_order}{lock}"))?,
            oldest_new_order_unlocked: match dialect.may_overlook_rows() {
                true => Some(prepare(oldest_new_order)?),
                false => None,
            },
            new_orders_delete: prepare(&format!("DELETE FROM new_orders WHERE {}", orders_of("no")))?,
            delivered_customers: prepare(&format!(
                "SELECT o_d_id, o_c_id FROM orders WHERE {orders_in_orders}{lock}"
            ))?,
            delivered_orders_update: prepare(&format!(
                "UPDATE orders SET o_carrier_id = ? WHERE {orders_in_orders}"
            ))?,
            delivered_amounts: prepare(&format!(
                "SELECT ol_d_id, {} FROM order_line WHERE {} GROUP BY ol_d_id",
                dialect.as_cents("SUM(ol_amount)"),
                orders_of("ol")
            ))?,
            delivered_lines_update: prepare(&format!(
                "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE {}",
                orders_of("ol")
            ))?,
            delivered_customers_update: prepare(&format!(
                "UPDATE customer SET c_balance = c_balance + CASE c_d_id {} END * 0.01, \
                 c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND ({})",
                case(DISTRICTS as usize),
                repeat("(c_d_id = ? AND c_id = ?)", " OR ", DISTRICTS as usize)
            ))?,
            district_next_order: prepare("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?")?,
            low_stock: prepare(
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?",
            )?,
        })
    }
}

fn repeat(part: &str, separator: &str, count: usize) -> String {
    vec![part; count].join(separator)
}
