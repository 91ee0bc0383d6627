"""A GPU is asked for where there is no driver."""

import ostler


def test_it_is_said_as_ostler_doctor_says_it():
    for name, make in (("cartpole", ostler.make_vec), ("spread", ostler.make_marl)):
        try:
            make(name, 2, device="cuda:0")
        except ostler.DeviceError as e:
            assert "no NVIDIA driver" in str(e) and "install NVIDIA's driver" in str(e)
            assert isinstance(e, RuntimeError)
        else:
            raise AssertionError("there is a GPU")
    # The mistake comes first that is in the file.
    try:
        ostler.make_vec("cartpole", 2, device="cuda", env={"decimaton": 3})
    except ostler.ConfigError as e:
        assert "did you mean env.decimation" in str(e)
    else:
        raise AssertionError("a key that there is not is taken")
    ostler.make_vec("cartpole", 2, device="cpu").close()
