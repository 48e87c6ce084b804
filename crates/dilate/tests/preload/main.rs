//! Each function of the library, called in a process that runs under it, and measured outside by the real
//! clock.

#![expect(unsafe_code, reason = "functions of C are called as a program in C does")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behaviour;
mod child;
mod clocks;
mod cost;
mod files;
mod kernel;
mod library;
mod remains;
mod sleeps;
mod threads;
mod timers;
mod waits;
