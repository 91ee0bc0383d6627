//! A simulation's tables in which everything is set once: defaults, one element in every list
//! of tables, a value for every option. The literals name every field, so that a new key
//! cannot be forgotten here.

use super::Simulation;
use super::walk::ANY;
use crate::config::{
    ActionKind, ActionTerm, ActuatorModel, ActuatorTerm, AgentsConfig, BaseConfig, BiasWhen,
    CommandKind, CommandTerm, Conditions, ConeWord, ContactTerm, CriticCopy, Delay, DelayConfig,
    DelaySteps, Distribution, DrawConfig, EventRange, EventTerm, EventTime, FloorConfig,
    FloorTable, GroupOptions, HalfOrRange, Heading, HeightConfig, InputOrder, IntegratorWord,
    JointLimit, MetricTerm, NativeCode, NativeTerm, NativeUnit, NetworkConfig, NoiseKind,
    ObservationGroup, ObservationTerm, OneOrMany, Operation, OptionTable, Over, PseudoRange,
    Ranges, Resample, ResetTerm, RewardOptions, RewardTerm, SimConfig, Span, Spread, SpreadConfig,
    Stack, StartConfig, StateTerm, TaskConfig, TerminationTerm,
};
use ostler_model::Activation;
use std::collections::BTreeMap;

impl Simulation {
    /// Everything set once: what [`Rules`](super::Rules) are made of.
    pub fn exemplar() -> Self {
        let number = || OneOrMany::One(0.0);
        let ranges = || Ranges::Named([(ANY.to_string(), [0.0, 0.0])].into());
        let named = || OneOrMany::Named([(ANY.to_string(), 0.0)].into());
        let range = [0.0, 0.0];
        let text = String::new;
        let draw = || DrawConfig {
            distribution: Distribution::Normal,
            range: Some(range),
            mean: Some(0.0),
            std: Some(0.0),
            probability: Some(0.0),
            choices: vec![0.0],
            weights: vec![0.0],
        };
        // The longest forms; the others are in `forms`.
        let spread = || {
            Spread::Named(SpreadConfig {
                uniform: Some(HalfOrRange::Half(0.0)),
                normal: Some(0.0),
                draw: Some(draw()),
                when: Some(BiasWhen::Reset),
            })
        };
        let delay =
            || Delay::Table(DelayConfig { steps: DelaySteps::Fixed(0), redraw: 0, hold: 0.0 });
        Self {
            agents: Some(AgentsConfig { names: vec![text()], ..AgentsConfig::default() }),
            task: TaskConfig {
                robot: text(),
                robot_folder: Some(text()),
                floor: Some(FloorConfig::Table(FloorTable::default())),
                base: Some(BaseConfig::Free),
                start_height: Some(HeightConfig::At(0.0)),
                balance_inertia: true,
                default_pose: Some(text()),
                params: BTreeMap::from([(ANY.to_string(), 0.0)]),
                names: BTreeMap::from([(ANY.to_string(), vec![text()])]),
                lets: BTreeMap::from([(ANY.to_string(), text())]),
                state: vec![StateTerm {
                    name: text(),
                    unit: Some(text()),
                    init: text(),
                    update: text(),
                }],
                metric: vec![MetricTerm {
                    name: text(),
                    expr: text(),
                    unit: Some(text()),
                    over: Over::default(),
                    agents: Some(vec![text()]),
                }],
                contact: vec![ContactTerm {
                    geoms: vec![text()],
                    condim: Some(0),
                    friction: Some(OneOrMany::Many(vec![0.0])),
                    priority: Some(0),
                    solref: Some(range),
                    solimp: Some(vec![0.0]),
                    contype: Some(0),
                    conaffinity: Some(0),
                }],
                option: OptionTable {
                    integrator: Some(IntegratorWord::Euler),
                    cone: Some(ConeWord::Elliptic),
                    impratio: Some(0.0),
                    noslip_iterations: Some(0),
                    nativeccd: Some(true),
                },
                actuator: vec![ActuatorTerm {
                    joints: vec![text()],
                    model: ActuatorModel::default(),
                    stiffness: Some(named()),
                    damping: Some(named()),
                    effort_limit: Some(named()),
                    saturation_effort: Some(named()),
                    velocity_limit: Some(named()),
                    armature: Some(named()),
                    friction: Some(named()),
                    delay: Some(delay()),
                    network: Some(NetworkConfig {
                        file: text(),
                        activation: Some(Activation::default()),
                        history: Some(vec![0]),
                        order: Some(InputOrder::default()),
                        position_scale: 0.0,
                        velocity_scale: 0.0,
                        effort_scale: 0.0,
                    }),
                }],
                native: vec![NativeTerm {
                    name: text(),
                    file: text(),
                    function: Some(text()),
                    inputs: vec![text()],
                    outputs: 1,
                    // The longest form; the other is in `forms`.
                    unit: Some(NativeUnit::Each(vec![text()])),
                    memory: 1,
                    checksum: Some(text()),
                }],
                action: vec![ActionTerm {
                    actuators: vec![text()],
                    kind: ActionKind::default(),
                    scale: named(),
                    offset: named(),
                    clip: Some(ranges()),
                    choices: vec![vec![0.0]],
                    stiffness: Some(named()),
                    damping: Some(named()),
                    delay: Some(delay()),
                    encoders: Some(text()),
                    agents: Some(vec![text()]),
                }],
                command: vec![CommandTerm {
                    name: text(),
                    // Defaults are left out of what is written.
                    kind: CommandKind::Velocity,
                    range: vec![range],
                    distribution: Distribution::Normal,
                    mean: vec![0.0],
                    std: vec![0.0],
                    probability: vec![0.0],
                    choices: vec![vec![0.0]],
                    weights: vec![0.0],
                    unit: text(),
                    resample_s: Resample::Every(0.0),
                    frame: Some(text()),
                    lin_vel_x: Some(range),
                    lin_vel_y: Some(range),
                    ang_vel_z: Some(range),
                    heading: Some(Heading::default()),
                    standing: 1.0,
                    forward: 1.0,
                    world: 1.0,
                    deadband: 1.0,
                }],
                observation: vec![ObservationTerm {
                    name: text(),
                    expr: text(),
                    group: ObservationGroup::default(),
                    scale: number(),
                    clip: Some(range),
                    noise: spread(),
                    // The default is left out of what is written.
                    noise_kind: NoiseKind::Normal,
                    bias: Some(spread()),
                    delay: Some(delay()),
                    history: Some(0),
                    critic: Some(CriticCopy {
                        seen: true,
                        noise: Some(spread()),
                        bias: Some(spread()),
                        delay: Some(delay()),
                        history: Some(0),
                    }),
                    agents: Some(vec![text()]),
                }],
                observations: BTreeMap::from([(
                    ANY.to_string(),
                    GroupOptions { history: Some(0), stack: Stack::Term },
                )]),
                reward: vec![RewardTerm {
                    name: text(),
                    expr: text(),
                    weight: 0.0,
                    agents: Some(vec![text()]),
                }],
                termination: vec![TerminationTerm { name: text(), expr: text(), truncate: false }],
                reset: vec![ResetTerm {
                    target: text(),
                    uniform: Some(ranges()),
                    log_uniform: Some(ranges()),
                    normal: Some(named()),
                    draw: Some(draw()),
                    scale: Some(ranges()),
                    value: Some(named()),
                    expr: Some(text()),
                    choice: vec![vec![0.0]],
                    within_limits: Some(0.0),
                }],
                start: Some(StartConfig { until: Conditions::One(text()), tries: 1 }),
                event: vec![EventTerm {
                    name: text(),
                    when: EventTime::Startup,
                    interval_s: Some(Span::One(0.0)),
                    set: text(),
                    operation: Operation::Add,
                    distribution: Distribution::Normal,
                    // The longest form; the others are in `forms`.
                    range: Some(EventRange::Pseudo(PseudoRange {
                        alpha: Some(range),
                        d: Some(range),
                        s: Some(range),
                        t: Some(range),
                    })),
                    mean: Some(number()),
                    std: Some(number()),
                    probability: Some(number()),
                    choices: vec![0.0],
                    weights: vec![0.0],
                    shared: true,
                    duration_s: Some(Span::One(0.0)),
                }],
                rewards: RewardOptions {
                    scale_by_dt: false,
                    clip: Some(range),
                    max_abs: Some(0.0),
                },
                agents: None,
                native_code: NativeCode::default(),
            },
            sim: SimConfig {
                limit: vec![JointLimit {
                    joints: vec![text()],
                    max_speed: Some(0.0),
                    max_position: Some(0.0),
                }],
                ..SimConfig::default()
            },
            ..Self::default()
        }
    }
}
