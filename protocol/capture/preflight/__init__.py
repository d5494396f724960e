"""The last look before a program is handed out: does it train what the submitter's code trains?

    repeat       the code does the same in every step: two traces, and what Python keeps between steps
    reference    the same steps by torch: the submitter's code in float32, the traced graph in float64
    compare      loss, gradients and buffers of the exact step beside both
    locate       the first operation where a difference begins
    following    whole training steps by torch, beside the exact ones, for who wants to see them
    run          all of it on a few batches, drawn as the program draws them

Each refusal is a `CaptureError`; what passes is described by a `result.Report`.
"""
