//! Inputs of a terminal (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1): pure, seeded, audited without a server.

use super::super::preset::{Rules, rules};
use super::super::random::{Constants, last_name};
use super::super::{DISTRICTS, ITEMS, Spec};
use super::deck::Deck;
use spindle_base::random::Random;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: u32,
    pub(super) supply_warehouse: u32,
    pub(super) quantity: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Customer {
    Id(u32),
    LastName(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewOrder {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) customer: u32,
    /// For an intended rollback the item of the last line does not exist.
    pub(super) lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payment {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) customer_warehouse: u32,
    pub(super) customer_district: u32,
    pub(super) customer: Customer,
    pub(super) amount_cents: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderStatus {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) customer: Customer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) warehouse: u32,
    pub(super) carrier: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StockLevel {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) threshold: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Input {
    /// Index in [`super::KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Input::NewOrder(_) => 0,
            Input::Payment(_) => 1,
            Input::OrderStatus(_) => 2,
            Input::Delivery(_) => 3,
            Input::StockLevel(_) => 4,
        }
    }
}

/// Draws the inputs of one terminal.
#[derive(Debug)]
pub(super) struct Generator {
    rules: Rules,
    warehouses: u32,
    homes: Vec<u32>,
    stock_level_district: u32,
    constants: Constants,
    deck: Deck,
    random: Random,
}

impl Generator {
    /// `terminal` counts from zero.
    pub(super) fn new(spec: &Spec, terminal: u32, seed: u64) -> Generator {
        let (rules, warehouses) = (rules(spec.preset), spec.warehouses);
        let homes = if rules.any_home {
            (1..=warehouses).collect()
        } else {
            homes(warehouses, spec.terminals, terminal % spec.terminals)
        };
        Generator {
            rules,
            warehouses,
            homes,
            stock_level_district: terminal % DISTRICTS + 1,
            constants: Constants::for_run(seed),
            deck: Deck::new(rules.cards),
            random: Random::seeded(&[seed, u64::from(terminal)]),
        }
    }

    pub(super) fn draw(&mut self) -> Input {
        let kind = self.deck.draw(&mut self.random);
        let home = self.homes[self.random.between(0, self.homes.len() as u32 - 1) as usize];
        match kind {
            0 => Input::NewOrder(self.new_order(home)),
            1 => Input::Payment(self.payment(home)),
            2 => Input::OrderStatus(OrderStatus {
                warehouse: home,
                district: self.random.between(1, DISTRICTS),
                customer: self.customer(),
            }),
            3 => Input::Delivery(Delivery { warehouse: home, carrier: self.random.between(1, 10) }),
            _ => Input::StockLevel(StockLevel {
                warehouse: home,
                district: self.stock_level_district,
                threshold: self.random.between(10, 20),
            }),
        }
    }

    fn new_order(&mut self, home: u32) -> NewOrder {
        let district = self.random.between(1, DISTRICTS);
        let customer = self.constants.customer(&mut self.random);
        let count = self.random.between(self.rules.fewest_lines, 15);
        let rolls_back = self.random.percent(1);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: self.constants.item(&mut self.random),
                supply_warehouse: if self.is_remote(1) { self.other_warehouse(home) } else { home },
                quantity: self.random.between(1, 10),
            })
            .collect();
        if let (true, Some(last)) = (rolls_back, lines.last_mut()) {
            last.item = ITEMS + 1;
        }
        NewOrder { warehouse: home, district, customer, lines }
    }

    fn payment(&mut self, home: u32) -> Payment {
        let district = self.random.between(1, DISTRICTS);
        let (customer_warehouse, customer_district) = if self.is_remote(15) {
            (self.other_warehouse(home), self.random.between(1, DISTRICTS))
        } else {
            (home, district)
        };
        Payment {
            warehouse: home,
            district,
            customer_warehouse,
            customer_district,
            customer: self.customer(),
            amount_cents: self.random.between(100, 500_000),
        }
    }

    fn customer(&mut self) -> Customer {
        if self.random.percent(60) {
            Customer::LastName(last_name(self.constants.last_name_number(&mut self.random)))
        } else {
            Customer::Id(self.constants.customer(&mut self.random))
        }
    }

    fn is_remote(&mut self, percent: u32) -> bool {
        self.rules.has_remote && self.random.percent(percent)
    }

    /// Any warehouse except `home`; `home` if it is the only one.
    fn other_warehouse(&mut self, home: u32) -> u32 {
        if self.warehouses == 1 {
            return home;
        }
        let drawn = self.random.between(1, self.warehouses - 1);
        if drawn < home { drawn } else { drawn + 1 }
    }
}

/// One home warehouse if there are at least as many terminals as warehouses, otherwise a fixed share of them.
fn homes(warehouses: u32, terminals: u32, terminal: u32) -> Vec<u32> {
    if terminals >= warehouses {
        let home = u64::from(terminal) * u64::from(warehouses) / u64::from(terminals);
        return vec![home as u32 + 1];
    }
    (0..warehouses)
        .filter(|warehouse| warehouse % terminals == terminal)
        .map(|warehouse| warehouse + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::Preset;
    use super::*;

    fn spec(warehouses: u32, terminals: u32, preset: Option<Preset>) -> Spec {
        Spec { preset, ..Spec::new(warehouses, terminals) }
    }

    /// Clause 9.2.2.5 over two and a half million transactions of ten terminals.
    #[test]
    fn inputs_keep_the_audit_bounds() {
        let seed = 20_261_121;
        let mut kinds = [0u32; 5];
        let (mut rollbacks, mut remote_lines, mut last_names, mut customers, mut remote_payments) =
            (0, 0, 0, 0, 0);
        let mut by_line_count = [0u32; 16];
        for terminal in 0..10 {
            let mut generator = Generator::new(&spec(10, 10, None), terminal, seed);
            for _ in 0..250_000 {
                let input = generator.draw();
                kinds[input.kind()] += 1;
                let customer = match &input {
                    Input::NewOrder(order) => {
                        assert_eq!(order.warehouse, terminal + 1, "a terminal has one home warehouse");
                        by_line_count[order.lines.len()] += 1;
                        remote_lines += order
                            .lines
                            .iter()
                            .filter(|line| line.supply_warehouse != order.warehouse)
                            .count() as u32;
                        let unused = order.lines.iter().position(|line| line.item > ITEMS);
                        assert!(
                            unused.is_none_or(|index| index == order.lines.len() - 1),
                            "not on the last line"
                        );
                        rollbacks += u32::from(unused.is_some());
                        None
                    }
                    Input::Payment(payment) => {
                        remote_payments += u32::from(payment.customer_warehouse != payment.warehouse);
                        Some(&payment.customer)
                    }
                    Input::OrderStatus(status) => Some(&status.customer),
                    Input::Delivery(_) | Input::StockLevel(_) => None,
                };
                customers += u32::from(customer.is_some());
                last_names += u32::from(matches!(customer, Some(Customer::LastName(_))));
            }
        }

        let check = |what: &str, part: u32, whole: u32, low: f64, high: f64| {
            let percent = f64::from(part) / f64::from(whole) * 100.0;
            assert!(
                (low..=high).contains(&percent),
                "{what}: {percent} % is not in {low}..{high} (seed {seed})"
            );
        };
        let total: u32 = kinds.iter().sum();
        let lines: u32 = (5..16).map(|count| by_line_count[count] * count as u32).sum();
        check("rollbacks", rollbacks, kinds[0], 0.9, 1.1);
        check("remote lines", remote_lines, lines, 0.95, 1.05);
        check("remote payments", remote_payments, kinds[1], 14.0, 16.0);
        check("by last name", last_names, customers, 57.0, 63.0);
        check("mean lines, in hundredths", lines, kinds[0], 950.0, 1_050.0);
        for count in &by_line_count[5..] {
            check("uniform number of lines", *count, kinds[0], 8.9, 9.3);
        }
        for (kind, cards) in rules(None).cards.iter().enumerate() {
            check(super::super::super::KINDS[kind], kinds[kind], total, *cards as f64, *cards as f64);
        }
    }

    #[test]
    fn one_seed_gives_one_history() {
        let draw = |seed| {
            let mut generator = Generator::new(&spec(3, 3, None), 1, seed);
            (0..50).map(|_| generator.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn presets_draw_as_their_kits_do() {
        // New orders, their fewest lines, home warehouses, and whether anything was remote, of 23,000
        // transactions.
        let check = |preset, expect_new_orders: u32, expect_fewest: usize, expect_remote: bool| {
            let mut generator = Generator::new(&spec(5, 5, Some(preset)), 0, 1);
            let (mut homes, mut new_orders, mut fewest, mut is_remote) = ([false; 5], 0, 15, false);
            for _ in 0..23_000 {
                match generator.draw() {
                    Input::NewOrder(order) => {
                        new_orders += 1;
                        homes[order.warehouse as usize - 1] = true;
                        fewest = fewest.min(order.lines.len());
                        is_remote |= order.lines.iter().any(|line| line.supply_warehouse != order.warehouse);
                    }
                    Input::Payment(payment) => is_remote |= payment.customer_warehouse != payment.warehouse,
                    _ => {}
                }
            }
            assert_eq!(homes, [true; 5]);
            assert_eq!((new_orders, fewest, is_remote), (expect_new_orders, expect_fewest, expect_remote));
        };
        check(Preset::TpccMysql, 10_000, 5, true);
        check(Preset::Dbt2, 23_000 / 100 * 45, 6, false);
    }

    #[test]
    fn every_warehouse_is_the_home_of_some_terminal() {
        for (warehouses, terminals) in [(1, 1), (10, 8), (10, 10), (3, 8), (8, 3)] {
            let mut all: Vec<u32> = (0..terminals).flat_map(|t| homes(warehouses, terminals, t)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(
                all,
                (1..=warehouses).collect::<Vec<_>>(),
                "{warehouses} warehouses, {terminals} terminals"
            );
        }
    }

    #[test]
    fn a_remote_warehouse_is_never_the_home() {
        let mut generator = Generator::new(&spec(3, 1, None), 0, 1);
        for home in 1..=3 {
            assert!((0..100).all(|_| generator.other_warehouse(home) != home));
        }
    }
}
