//! The machine as a whole: maker, hypervisor, clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_base::proc::field;

use super::tree::Tree;

const DMI: &str = "sys/class/dmi/id";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct Platform {
    pub architecture: String,
    /// From the firmware (DMI): maker and model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// `None` on bare metal, as far as the machine tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocksources_available: Vec<String>,
}

impl Platform {
    pub(super) fn read(tree: Tree) -> Platform {
        let vendor = tree.text(&format!("{DMI}/sys_vendor"));
        let product = tree.text(&format!("{DMI}/product_name"));
        let available = tree.text(&format!("{CLOCK}/available_clocksource")).unwrap_or_default();
        let available: Vec<String> = available.split_whitespace().map(str::to_owned).collect();
        let cpu = tree.text("proc/cpuinfo").unwrap_or_default();
        let has_flag =
            field(&cpu, "flags", ':').is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let firmware = format!("{} {}", vendor.as_deref().unwrap_or(""), product.as_deref().unwrap_or(""));
        let xen = tree.text("sys/hypervisor/type");
        Platform {
            architecture: std::env::consts::ARCH.to_owned(),
            hypervisor: xen.or_else(|| hypervisor(has_flag, &firmware, &available)),
            vendor,
            product,
            clocksource: tree.text(&format!("{CLOCK}/current_clocksource")),
            clocksources_available: available,
        }
    }
}

/// A bare machine of a maker of virtual ones (`Amazon EC2`, `m5.metal`) lacks the processor's flag.
/// Processors without flags tell by their firmware only, and only by the makers that make no bare machines.
fn hypervisor(has_flag: bool, firmware: &str, clocksources: &[String]) -> Option<String> {
    const VIRTUAL_ONLY: [(&str, &str); 5] = [
        ("QEMU", "KVM or QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("Google Compute Engine", "Google Compute Engine"),
    ];
    const WITH_FLAG: [(&str, &str); 3] =
        [("Amazon EC2", "Amazon EC2"), ("Microsoft", "Hyper-V"), ("Xen", "Xen")];
    const BY_CLOCK: [(&str, &str); 3] = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let by_firmware = |known: &[(&str, &str)]| {
        known.iter().find(|(mark, _)| firmware.contains(mark)).map(|(_, name)| (*name).to_owned())
    };
    let by_clock = || {
        let has = |mark: &str| clocksources.iter().any(|clock| clock.starts_with(mark));
        BY_CLOCK.iter().find(|(mark, _)| has(mark)).map(|(_, name)| (*name).to_owned())
    };
    match has_flag {
        false => by_firmware(&VIRTUAL_ONLY),
        true => by_firmware(&VIRTUAL_ONLY)
            .or_else(|| by_firmware(&WITH_FLAG))
            .or_else(by_clock)
            .or_else(|| Some("of an unknown kind".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_is_known_by_flag_firmware_and_clock() {
        let check = |has_flag: bool, firmware: &str, clock: &str, expect: Option<&str>| {
            assert_eq!(hypervisor(has_flag, firmware, &[clock.to_owned()]).as_deref(), expect, "{firmware}");
        };
        check(false, "Dell Inc. PowerEdge R740", "tsc", None);
        check(false, "Amazon EC2 m5.metal", "tsc", None);
        check(true, "Amazon EC2 m5.large", "kvm-clock", Some("Amazon EC2"));
        check(true, "Microsoft Corporation Virtual Machine", "tsc", Some("Hyper-V"));
        check(false, "Microsoft Corporation Surface", "tsc", None);
        check(false, "QEMU KVM Virtual Machine", "arch_sys_counter", Some("KVM or QEMU"));
        check(true, " ", "kvm-clock", Some("KVM"));
        check(true, " ", "hyperv_clocksource_tsc_page", Some("Hyper-V"));
        check(true, " ", "tsc", Some("of an unknown kind"));
    }
}
