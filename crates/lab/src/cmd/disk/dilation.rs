//! `--dilation K`: how many times slower time passes for an emulated disk.

use clap::Args;
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;

#[derive(Debug, Clone, Args)]
pub(super) struct DilationArguments {
    /// Time dilation, 0.25 to 64: the disk answers K times later, and its figures are told in dilated time, K
    /// times shorter than on the clock. This machine's delays are then a K-th as long.
    #[arg(long, value_name = "K", default_value = "1", allow_negative_numbers = true)]
    dilation: String,
}

impl DilationArguments {
    /// # Errors
    /// Not a number, or out of bounds.
    pub(super) fn dilation(&self) -> Result<Dilation, Mistake> {
        self.dilation.parse().map_err(|problem: String| Mistake::of_flag("dilation", problem))
    }
}
