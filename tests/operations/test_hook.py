"""The command of --after-batch that cannot even begin; tests/hostile/test_after_batch.py has the others."""

from gpuready.operations.hook import after_batch


def test_more_names_than_a_variable_can_hold() -> None:
    """Hosts where nothing is disturbed are one batch, however many they are; they have changed by now."""
    done = after_batch("true", [f"gpu{number:05d}.cluster.example.com" for number in range(6000)])
    assert done.exit_code == 126 and done.output == "Argument list too long: use a smaller --batch"
