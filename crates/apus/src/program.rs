//! Identity of the program that computes results, so that results of different builds are never mixed.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use apus_algorithms::Registry;
use apus_scenario::Setup;

use crate::written::Checksum;

/// The version and, in a build from the repository, a hash of the sources that determine results and reports
/// (`build.rs`).
pub const BUILD: &str = env!("APUS_BUILD");

/// Returns everything that determines the results of a run in addition to its effective configuration: the build, and
/// the implementations of each algorithm and of path policies from other crates.
pub fn program_of(setup: &Setup) -> String {
    program(setup, crate::registry())
}

fn program(setup: &Setup, registry: Registry) -> String {
    let mut program = BUILD.to_owned();
    for (label, config) in setup.algorithms() {
        if let Some(factory) = config.foreign() {
            let own = factory.implementation();
            program += &format!(" {label}={}", own.as_deref().unwrap_or(&EXECUTABLE));
        }
    }
    if !registry.foreign_balancers().is_empty() {
        program += &format!(" policies={}", *EXECUTABLE);
    }
    program
}

/// Hash of the executable, which contains the algorithms and path policies that [`main_with`](crate::main_with) adds.
static EXECUTABLE: LazyLock<String> = LazyLock::new(|| {
    let sum = env::current_exe().and_then(|path| Checksum::of(&path));
    // If the executable file cannot be read, a random value prevents the reuse of any result.
    sum.map_or_else(|_| format!("{:016x}", RandomState::new().hash_one(0)), |sum| sum.to_string())
});

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apus_cc::{AlgorithmInfo, BoxedPath, Derivation, ForeignBalancer, SettingError, Settings};
    use apus_scenario::{Options, Source};

    use super::*;

    struct Policy(&'static AlgorithmInfo);

    impl ForeignBalancer for Policy {
        fn info(&self) -> &'static AlgorithmInfo {
            self.0
        }

        fn derived(&self) -> &'static [Derivation] {
            &[]
        }

        fn configure(&self, _: &mut Settings) -> Result<BoxedPath, SettingError> {
            Err(SettingError::of_name("it is only named".to_owned()))
        }
    }

    #[test]
    fn results_of_a_program_with_its_own_path_policies_belong_to_its_executable() {
        let text = "duration = \"1ms\"\ntopology = \"star hosts=2 1Gbps 1us\"\n\
            algorithm = { name = \"swift\" }\n[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n";
        let source = Source { name: "mine".to_owned(), text: text.to_owned() };
        let scenario = crate::library::read(&source, Path::new(""), &Options::default());
        let setup = scenario.expect("good").runs.swap_remove(0).setup;
        assert_eq!(program(&setup, Registry::BUILT_IN), BUILD);
        let known = Registry::BUILT_IN.balancers().next().expect("a policy");
        let info = Box::leak(Box::new(AlgorithmInfo { name: "own", ..*known }));
        let policy: &'static dyn ForeignBalancer = Box::leak(Box::new(Policy(info)));
        let registry = Registry::BUILT_IN.with_balancers(Box::leak(Box::new([policy])));
        let with = program(&setup, registry.expect("one more policy"));
        assert_eq!(with, format!("{BUILD} policies={}", *EXECUTABLE));
    }
}
