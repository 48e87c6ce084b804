//! Advice on storage: what is known of it besides its speed.
//!
//! Belongs here: prices, endurance, the loss in a power cut, and what ranks storage by them. Must not know how
//! a raw figure is measured, and no command.

pub mod answer;
pub mod calibration;
pub mod candidates;
pub mod confirm;
pub mod endurance;
pub mod facts;
pub mod format;
pub mod memory;
pub mod need;
pub mod power_cut;
pub mod prediction;
pub mod prices;
pub mod production;
pub mod row;
pub mod source;
pub mod validation;
