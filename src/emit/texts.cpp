// Python and text that is the same for every model.
#include "emit/texts.h"

namespace ttc::emit {

const std::string_view parameters_text =
    R"py("""Weights of the model, by the paths of its modules: parameters.layers[0].fc.weight."""

from pathlib import Path

import ttnn


class Parameters:
    """Members by name, and by number where the model has a list of modules."""

    def __getitem__(self, index):
        return self.__dict__[str(index)]

    def put(self, path, value):
        """Sets the member that a dotted path names."""
        *modules, name = path.split(".")
        at = self
        for module in modules:
            at = at.__dict__.setdefault(module, Parameters())
        at.__dict__[name] = value


def load_parameters(device, folder=Path(__file__).parent / "weights"):
    """Tensors of the device as they were packed, tensors in host memory of what TT-NN lays out at its first use, and
    torch tensors of what runs on the host.
    """
    parameters = Parameters()
    for file in sorted(folder.glob("*.tensorbin")):
        parameters.put(file.stem, ttnn.load_tensor(file, device=device))
    for file in sorted(folder.glob("host/*.tensorbin")):
        parameters.put(file.stem, ttnn.load_tensor(file))
    if (folder / "host.safetensors").exists():
        from safetensors.torch import load_file

        for name, value in load_file(folder / "host.safetensors").items():
            parameters.put(name, value)
    return parameters
)py";

const std::string_view requirements_text = "ttnn>=0.81\ntorch\nsafetensors\n";

namespace {

constexpr std::string_view run_head =
    R"py("""Runs the model on a device and compares it with the call that was recorded with it."""

import argparse
import sys
from pathlib import Path

import torch
import ttnn
from safetensors.torch import load_file, save_file

from model import forward
from parameters import load_parameters

)py";

constexpr std::string_view run_body = R"py(

def pcc(actual, expected):
    """The correlation of two tensors; of single or equal values 1 where they are close, else 0."""
    a, b = actual.flatten().to(torch.float64), expected.flatten().to(torch.float64)
    centred_a, centred_b = a - a.mean(), b - b.mean()
    scale = centred_a.norm() * centred_b.norm()
    if scale == 0:
        return float(torch.allclose(a, b, rtol=0.02, atol=0.02))
    return float((centred_a * centred_b).sum() / scale)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--min-pcc", type=float, default=0.99)
    parser.add_argument("--save", type=Path, help="write the outputs here (safetensors)")
    options = parser.parse_args()

    vectors = load_file(Path(__file__).parent / "vectors.safetensors")
    inputs = [vectors[name] if kind == "tensor" else vectors[name].item() for name, kind in INPUTS]
    device = ttnn.open_device(device_id=options.device_id)
    try:
        parameters = load_parameters(device)
        outputs = forward(*inputs, parameters=parameters, device=device)
    finally:
        ttnn.close_device(device)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if options.save:
        save_file({f"out{i}": torch.as_tensor(one).contiguous() for i, one in enumerate(outputs)}, options.save)

    failed = False
    for i, output in enumerate(outputs):
        expected = vectors.get(f"out{i}")
        if expected is None:
            print(f"out{i}: nothing recorded")
            continue
        found = pcc(torch.as_tensor(output), expected)
        failed |= found < options.min_pcc
        print(f"out{i}: PCC {found:.6f}" + (" (too low)" if found < options.min_pcc else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
)py";

}  // namespace

std::string run_text(const Program& program, const SafeTensors& vectors) {
  std::string out(run_head);
  out += "INPUTS = [\n";
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(program.places.at(i));
    const auto at = vectors.tensors.find(name);
    const bool number = at != vectors.tensors.end() && program.number_inputs.contains(i);
    out += "    (\"" + name + "\", \"" + (number ? "number" : "tensor") + "\"),  # " + program.inputs[i] + "\n";
  }
  return out + "]\n" + std::string(run_body);
}

}  // namespace ttc::emit
