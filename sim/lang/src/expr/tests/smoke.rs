use super::fixture::World;
use crate::expr::Type;

#[test]
fn the_examples_of_the_design_compile_and_give_finite_numbers() {
    let world = World::new(3, 1);
    for (text, ty) in [
        ("exp(-norm2(command.xy - lin_vel(torso).xy) / 0.25)", "-"),
        ("sum(action^2)", "any"),
        ("contact(foot_1)", "bool"),
        ("lin_vel(torso)", "m/s"),
        ("joint_pos(\"hip_1\")", "rad"),
        ("joint_pos(\"hip_*\")", "rad"),
        ("height(torso) < 0.3 or upright(torso) < 0.5", "bool"),
        ("not between(height(torso), 0.2, 1) ", "bool"),
        ("[qpos[2:], clip(qvel, -10, 10)]", "any"),
        ("contact(\"foot_*\") ? 1 : 0", "any"),
        ("sum(contact(\"foot_*\")) * norm(lin_vel(torso).xy)", "m/s"),
        ("actuator_force(motor_1) * joint_vel(hip_1)", "W"),
        ("sum(joint_acc(\"hip_*\")^2)", "rad^2/s^4"),
        ("sensor(imu_acc)", "m/s^2"),
        ("sensor(pad)", "N"),
    ] {
        let program = world.compile(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let found = match program.ty() {
            Type::Bool => "bool",
            Type::Num { unit, .. } => unit,
        };
        assert_eq!(found, ty, "{text}");
        for row in world.eval(text) {
            assert!(row.iter().all(|x| x.is_finite()), "{text}: {row:?}");
        }
    }
}
