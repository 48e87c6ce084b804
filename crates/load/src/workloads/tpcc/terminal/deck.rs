//! The mix: a deck of cards per terminal (clause 5.2.4.2), so that the shares are exact for every deck.

use spindle_base::random::Random;

#[derive(Debug)]
pub(super) struct Deck {
    cards: Vec<usize>,
    position: usize,
}

impl Deck {
    /// A deck with these numbers of cards per kind.
    pub(super) fn new(counts: [usize; 5]) -> Deck {
        let cards: Vec<usize> =
            counts.iter().enumerate().flat_map(|(kind, count)| std::iter::repeat_n(kind, *count)).collect();
        Deck { position: cards.len(), cards }
    }

    /// The next card; an empty deck is refilled and shuffled.
    pub(super) fn draw(&mut self, random: &mut Random) -> usize {
        if self.position == self.cards.len() {
            random.shuffle(&mut self.cards);
            self.position = 0;
        }
        self.position += 1;
        self.cards[self.position - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hundred_transactions_have_the_exact_mix() {
        const CARDS: [usize; 5] = [45, 43, 4, 4, 4];
        let mut deck = Deck::new(CARDS);
        let mut random = Random::seeded(&[1]);
        let mut first = Vec::new();
        for round in 0..5 {
            let hand: Vec<usize> = (0..100).map(|_| deck.draw(&mut random)).collect();
            for (kind, count) in CARDS.iter().enumerate() {
                assert_eq!(hand.iter().filter(|card| **card == kind).count(), *count);
            }
            if round == 0 {
                first = hand;
            } else {
                assert_ne!(hand, first, "shuffled anew");
            }
        }
    }
}
