//! Regions, nations and cities, as TPC-H numbers them and as the benchmark names its cities.

/// By number.
pub(super) const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Name and number of the region, by number.
const NATIONS: [(&str, u8); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

/// Where a customer or a supplier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of the nation.
    pub(super) nation: u8,
    /// Ten cities of each nation have the digits from 0 to 9.
    pub(super) digit: u8,
}

impl Place {
    pub(super) fn nation_name(self) -> &'static str {
        NATIONS[usize::from(self.nation)].0
    }

    pub(super) fn region(self) -> &'static str {
        REGIONS[usize::from(NATIONS[usize::from(self.nation)].1)]
    }

    /// The first nine letters of the nation, and the digit.
    pub(super) fn city(self) -> String {
        format!("{:<9.9}{}", self.nation_name(), self.digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cities_are_named_as_the_queries_name_them() {
        assert_eq!(Place { nation: 23, digit: 1 }.city(), "UNITED KI1");
        assert_eq!(Place { nation: 18, digit: 0 }.city(), "CHINA    0");
        assert_eq!(Place { nation: 24, digit: 5 }.region(), "AMERICA");
    }
}
