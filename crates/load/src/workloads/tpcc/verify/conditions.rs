//! The consistency conditions 3.3.2.1 to 3.3.2.12. Each is a function that returns the violations of a
//! warehouse.
//!
//! An additional condition comes first, because an empty database would satisfy all twelve.

use std::collections::BTreeMap;

use super::super::{CUSTOMERS_PER_DISTRICT, DISTRICTS, FIRST_NEW_ORDER, ITEMS};
use super::facts::{District, Order, Warehouse};

/// One sentence per violation.
type Condition = fn(&Warehouse) -> Vec<String>;

pub(super) const CONDITIONS: [(&str, Condition); 13] = [
    ("4.3.3 rows of warehouse, district, customer, stock", cardinality),
    ("3.3.2.1 W_YTD = sum(D_YTD)", warehouse_and_districts),
    ("3.3.2.2 D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)", next_order),
    ("3.3.2.3 NEW-ORDER numbers have no gap", new_orders_without_gap),
    ("3.3.2.4 sum(O_OL_CNT) = lines of the district", lines_of_district),
    ("3.3.2.5 O_CARRIER_ID is null for new orders only", carrier),
    ("3.3.2.6 O_OL_CNT = lines of the order", lines_of_order),
    ("3.3.2.7 OL_DELIVERY_D is null without a carrier only", delivery_date),
    ("3.3.2.8 W_YTD = sum(H_AMOUNT)", warehouse_and_history),
    ("3.3.2.9 D_YTD = sum(H_AMOUNT)", district_and_history),
    ("3.3.2.10 C_BALANCE = delivered - paid", balance),
    ("3.3.2.11 orders - new orders - deliveries = 2100", deliveries),
    ("3.3.2.12 C_BALANCE + C_YTD_PAYMENT = delivered", balance_and_payments),
];

fn cardinality(warehouse: &Warehouse) -> Vec<String> {
    let Warehouse { id, exists, stock_count, districts, .. } = warehouse;
    if !exists {
        return vec![format!("warehouse {id} does not exist")];
    }
    let mut violations = per_district(warehouse, |district| {
        let count = district.customers.len();
        unless(count == CUSTOMERS_PER_DISTRICT as usize, || format!("{count} customers"))
    });
    violations.extend(unless(districts.len() == DISTRICTS as usize, || {
        format!("warehouse {id}: {} districts", districts.len())
    }));
    violations.extend(unless(*stock_count == u64::from(ITEMS), || {
        format!("warehouse {id}: {stock_count} rows of stock")
    }));
    violations
}

fn warehouse_and_districts(warehouse: &Warehouse) -> Vec<String> {
    let districts: i64 = warehouse.districts.iter().map(|district| district.year_to_date).sum();
    unless(warehouse.year_to_date == districts, || {
        format!(
            "warehouse {}: {} but the districts have {}",
            warehouse.id,
            money(warehouse.year_to_date),
            money(districts)
        )
    })
}

fn next_order(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        let last = district.orders.last_key_value().map(|(id, _)| *id);
        let last_new = district.new_orders.iter().max().copied();
        // After all orders are delivered there is no maximum to compare.
        let holds = last == Some(district.next_order - 1) && (last_new.is_none() || last_new == last);
        unless(holds, || format!("next {}, last {last:?}, last new {last_new:?}", district.next_order))
    })
}

fn new_orders_without_gap(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        let numbers = &district.new_orders;
        let (Some(first), Some(last)) = (numbers.iter().min(), numbers.iter().max()) else {
            return Vec::new();
        };
        unless((last - first + 1) as usize == numbers.len(), || {
            format!("{} new orders from {first} to {last}", numbers.len())
        })
    })
}

fn lines_of_district(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        let declared: u64 = district.orders.values().map(|order| u64::from(order.declared_lines)).sum();
        unless(declared == district.line_count, || {
            format!("{declared} lines declared, {} found", district.line_count)
        })
    })
}

fn carrier(warehouse: &Warehouse) -> Vec<String> {
    let orphans = warehouse.new_orders_without_order.iter();
    let mut violations: Vec<String> = orphans
        .map(|(district, order)| {
            format!("warehouse {}, district {district}: new order {order} has no order", warehouse.id)
        })
        .collect();
    violations.extend(per_order(
        warehouse,
        |order| order.has_carrier == order.in_new_orders,
        |order| format!("carrier {}, in NEW-ORDER {}", order.has_carrier, order.in_new_orders),
    ));
    violations
}

fn lines_of_order(warehouse: &Warehouse) -> Vec<String> {
    let orphans = warehouse.lines_without_order.iter();
    let mut violations: Vec<String> = orphans
        .map(|(district, order)| {
            format!(
                "warehouse {}, district {district}: lines of order {order}, which does not exist",
                warehouse.id
            )
        })
        .collect();
    violations.extend(per_order(
        warehouse,
        |order| order.declared_lines != order.lines,
        |order| format!("{} lines declared, {} found", order.declared_lines, order.lines),
    ));
    violations
}

fn delivery_date(warehouse: &Warehouse) -> Vec<String> {
    let violates = |order: &Order| order.delivered_lines != if order.has_carrier { order.lines } else { 0 };
    per_order(warehouse, violates, |order| {
        format!("carrier {}, {} of {} lines delivered", order.has_carrier, order.delivered_lines, order.lines)
    })
}

fn warehouse_and_history(warehouse: &Warehouse) -> Vec<String> {
    unless(warehouse.year_to_date == warehouse.history, || {
        format!(
            "warehouse {}: {} but {} paid",
            warehouse.id,
            money(warehouse.year_to_date),
            money(warehouse.history)
        )
    })
}

fn district_and_history(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        unless(district.year_to_date == district.history, || {
            format!("{} but {} paid", money(district.year_to_date), money(district.history))
        })
    })
}

fn balance(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        let delivered = delivered_by_customer(district);
        let customers = district.customers.iter();
        customers
            .filter_map(|(id, customer)| {
                let expected = delivered.get(id).copied().unwrap_or(0) - customer.history;
                (customer.balance != expected)
                    .then(|| format!("customer {id}: {} but {}", money(customer.balance), money(expected)))
            })
            .collect()
    })
}

/// The standard's form holds for a fresh database only. C_DELIVERY_CNT counts the deliveries since.
fn deliveries(warehouse: &Warehouse) -> Vec<String> {
    const DELIVERED_AT_FIRST: i64 = FIRST_NEW_ORDER as i64 - 1;
    per_district(warehouse, |district| {
        let deliveries: i64 =
            district.customers.values().map(|customer| i64::from(customer.deliveries)).sum();
        let (orders, new_orders) = (district.orders.len() as i64, district.new_orders.len() as i64);
        unless(orders - new_orders - deliveries == DELIVERED_AT_FIRST, || {
            format!("{orders} orders, {new_orders} new, {deliveries} delivered since the load")
        })
    })
}

fn balance_and_payments(warehouse: &Warehouse) -> Vec<String> {
    per_district(warehouse, |district| {
        let delivered = delivered_by_customer(district);
        let customers = district.customers.iter();
        customers
            .filter_map(|(id, customer)| {
                let expected = delivered.get(id).copied().unwrap_or(0);
                let found = customer.balance + customer.year_to_date;
                (found != expected)
                    .then(|| format!("customer {id}: {} but {}", money(found), money(expected)))
            })
            .collect()
    })
}

fn delivered_by_customer(district: &District) -> BTreeMap<u32, i64> {
    let mut delivered = BTreeMap::new();
    for order in district.orders.values() {
        *delivered.entry(order.customer).or_default() += order.delivered_amount;
    }
    delivered
}

fn per_district(warehouse: &Warehouse, check: impl Fn(&District) -> Vec<String>) -> Vec<String> {
    let place = |district: &District| format!("warehouse {}, district {}", warehouse.id, district.id);
    let districts = warehouse.districts.iter();
    districts
        .flat_map(|district| {
            check(district).into_iter().map(move |violation| format!("{}: {violation}", place(district)))
        })
        .collect()
}

fn per_order(
    warehouse: &Warehouse,
    violates: impl Fn(&Order) -> bool,
    describe: impl Fn(&Order) -> String,
) -> Vec<String> {
    per_district(warehouse, |district| {
        let orders = district.orders.iter();
        orders
            .filter(|(_, order)| violates(order))
            .map(|(id, order)| format!("order {id}: {}", describe(order)))
            .collect()
    })
}

fn unless(holds: bool, violation: impl FnOnce() -> String) -> Vec<String> {
    if holds { Vec::new() } else { vec![violation()] }
}

fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}
