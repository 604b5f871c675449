//! Algorithms in Python: classes that run next to the built-in algorithms, in the simulator and over UDP.
//!
//! A class is registered under a name ([`register_algorithm`]). Its description stays until the process ends, because
//! it is `'static` in the layers below; classes with the same name and description share it. Each flow has an object of
//! the class, and [`sender`] calls it while holding the interpreter's lock.

mod declaration;
pub mod events;
mod sender;
mod thread;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, ptr};

use apus::api;
use apus_algorithms::AlgorithmConfig;
use apus_cc::rtt::RtoRule;
use apus_cc::{
    Acknowledging, AlgorithmInfo, BoxedReceiver, BoxedSender, BoxedSwitch, CreditLimit, Derivation,
    FieldLayout, FlowInfo, ForeignAlgorithm, ForeignFactory, ParamKind, ProfilePackets,
    SettingError, Settings, SwitchInfo, Tunable,
};
use apus_scenario::Setup;
use apus_sim::{Fault, Watch};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use declaration::{Declaration, Description, Hooks};
use sender::PySender;

/// An algorithm whose sender half is a Python class. Switches do not take part.
struct PyAlgorithm {
    info: &'static AlgorithmInfo,
    description: Description,
    /// Class for scenarios that are read from now on.
    class: Mutex<Arc<Class>>,
}

/// A Python class, and the methods that it defines.
struct Class {
    class: Py<PyAny>,
    /// Name of the class, for errors.
    name: String,
    hooks: Hooks,
    /// Hash of its code.
    implementation: String,
}

/// The algorithms that [`register_algorithm`] has registered.
struct Registered {
    /// All algorithms of this process.
    all: Vec<&'static PyAlgorithm>,
    /// Algorithms that scenarios may name: one per name.
    current: Vec<&'static PyAlgorithm>,
}

static REGISTERED: Mutex<Registered> = Mutex::new(Registered { all: vec![], current: vec![] });

/// Registers a class under a name, in place of an earlier class of that name.
#[pyfunction]
pub fn register_algorithm(
    name: String,
    cls: Bound<'_, PyAny>,
    declaration: Declaration,
) -> PyResult<()> {
    let class = Arc::new(Class {
        name: cls.getattr("__qualname__")?.extract()?,
        class: cls.unbind(),
        hooks: declaration.hooks(),
        implementation: declaration.implementation,
    });
    let description = declaration.description;
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = registered.all.iter().copied();
    let known =
        known.filter(|one| one.info.name == name).find(|one| one.description == description);
    let algorithm = match known {
        Some(algorithm) => {
            *algorithm.class.lock().unwrap_or_else(PoisonError::into_inner) = class;
            algorithm
        }
        None => {
            let info = description.clone().info(name).map_err(|error| errors::of_input(&error))?;
            let class = Mutex::new(class);
            let algorithm = &*Box::leak(Box::new(PyAlgorithm { info, description, class }));
            registered.all.push(algorithm);
            algorithm
        }
    };
    if !registered.current.iter().any(|one| ptr::eq(*one, algorithm)) {
        api::register(algorithm).map_err(|error| errors::of_input(&error.message))?;
        registered.current.retain(|one| one.info.name != algorithm.info.name);
        registered.current.push(algorithm);
    }
    Ok(())
}

/// Returns the parameters of a registered algorithm in the form that its objects receive: the `given` values, and
/// defaults for all others.
#[pyfunction]
pub fn algorithm_parameters<'py>(
    py: Python<'py>,
    name: &str,
    given: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let built = api::registry().build(name, None, &given);
    let config = built.map_err(|error| errors::of_input(&error.message))?;
    match factory(&config) {
        Some(factory) => factory.parameters.bind(py).copy(),
        None => Err(errors::of_input(&format!("`{name}` is no algorithm in Python"))),
    }
}

/// Returns the factory of a Python algorithm; `None` for any other algorithm.
pub fn factory(config: &AlgorithmConfig) -> Option<&PyFactory> {
    let foreign: &dyn Any = config.foreign()?;
    foreign.downcast_ref().map(|SharedFactory(factory)| &**factory)
}

/// Returns the Python classes that a run uses, by the names of their algorithms.
pub fn classes(py: Python<'_>, setup: &Setup) -> Vec<(&'static str, Py<PyAny>, String)> {
    let mut classes: Vec<(&str, Py<PyAny>, String)> = Vec::new();
    for (_, config) in setup.algorithms() {
        let Some(factory) = factory(config) else { continue };
        let (name, class) = (config.info().name, &factory.class);
        if !classes.iter().any(|(known, ..)| *known == name) {
            classes.push((name, class.class.clone_ref(py), class.implementation.clone()));
        }
    }
    classes
}

/// Returns `true` if a run calls Python, so that its threads compete for the interpreter's lock.
pub fn calls_python(setup: &Setup) -> bool {
    setup.algorithms().any(|(_, config)| factory(config).is_some())
}

/// Returns the exception of a Python algorithm that failed before any run began.
pub fn failure(py: Python<'_>, fault: Fault) -> PyErr {
    let error = errors::of_input(&fault.message);
    error.set_cause(py, exception_of(fault));
    error
}

fn exception_of(fault: Fault) -> Option<PyErr> {
    fault.cause.downcast().ok().map(|error| *error)
}

/// Returns the exception of a Python algorithm that ended one of the watched runs.
pub fn take_exception(watch: &Watch) -> Option<PyErr> {
    exception_of(watch.take_fault()?)
}

impl ForeignAlgorithm for PyAlgorithm {
    fn info(&self) -> &'static AlgorithmInfo {
        self.info
    }

    fn derived(&self) -> &'static [Derivation] {
        &[]
    }

    fn tuned(&self) -> &'static [Tunable] {
        &[]
    }

    fn packets(&self) -> &'static [ProfilePackets] {
        &[]
    }

    fn fields(&self) -> Option<FieldLayout> {
        None
    }

    fn configure(&self, settings: &mut Settings) -> Result<Arc<dyn ForeignFactory>, SettingError> {
        let rto = RtoRule::from_settings(settings);
        let parameters = Python::attach(|py| values(py, self.info, settings).map(Bound::unbind));
        let parameters = parameters.map_err(|error| SettingError::of_name(error.to_string()))?;
        let class = Arc::clone(&self.class.lock().unwrap_or_else(PoisonError::into_inner));
        let factory = PyFactory { class, parameters, rto, raised: Mutex::new(None) };
        Ok(Arc::new(SharedFactory(Arc::new(factory))))
    }
}

/// Returns the values of all parameters in Python's units: seconds, bytes, bits per second.
fn values<'py>(
    py: Python<'py>,
    info: &AlgorithmInfo,
    settings: &Settings,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for parameter in info.parameters {
        let name = parameter.name;
        match parameter.kind {
            ParamKind::Number => values.set_item(name, settings.number(name)),
            ParamKind::Count => values.set_item(name, settings.count(name)),
            ParamKind::Time => values.set_item(name, events::seconds(settings.time(name).as_ps())),
            ParamKind::Size => values.set_item(name, settings.size(name).get()),
            ParamKind::Rate => values.set_item(name, settings.rate(name).as_bps() as f64),
            ParamKind::Flag => values.set_item(name, settings.flag(name)),
            ParamKind::Choice(_) => values.set_item(name, settings.choice(name)),
        }?;
    }
    Ok(values)
}

/// A Python algorithm with its parameters.
pub struct PyFactory {
    class: Arc<Class>,
    parameters: Py<PyDict>,
    rto: RtoRule,
    /// Exception that ended an engine over UDP. A run of the simulator ends with a [`Fault`](apus_sim::Fault) instead.
    raised: Mutex<Option<PyErr>>,
}

#[cfg(all(feature = "real", target_os = "linux"))]
impl PyFactory {
    /// Returns the first exception of the algorithm's flows.
    pub fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.as_ref().map(|error| error.clone_ref(py))
    }
}

impl fmt::Debug for PyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PyFactory").field(&self.class.name).finish()
    }
}

/// Factory shared by the flows of an algorithm.
#[derive(Debug)]
struct SharedFactory(Arc<PyFactory>);

impl ForeignFactory for SharedFactory {
    fn sender(&self, flow: &FlowInfo) -> BoxedSender {
        BoxedSender::new(PySender::new(Arc::clone(&self.0), flow))
    }

    fn receiver(&self, _: &FlowInfo) -> BoxedReceiver {
        BoxedReceiver::new(Acknowledging)
    }

    fn switch(&self, _: &SwitchInfo) -> Option<BoxedSwitch> {
        None
    }

    fn fields(&self) -> Option<FieldLayout> {
        None
    }

    fn fine_timers(&self) -> bool {
        false
    }

    fn credit_limit(&self) -> Option<CreditLimit> {
        None
    }

    fn grant_pace(&self, _: &FlowInfo) -> Option<apus_cc::GrantPace> {
        None
    }

    fn reads_receiver_level(&self) -> bool {
        false
    }

    fn implementation(&self) -> Option<String> {
        Some(self.0.class.implementation.clone())
    }
}
