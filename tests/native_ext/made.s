# A function that calls what it is given, and computes on after that: only its unwind table says where its caller is.
# It has tags, as Numba gives them: made::work[abi:v1](long).
        .text
        .globl  _ZN4made4workB2v1El
        .type   _ZN4made4workB2v1El, @function
_ZN4made4workB2v1El:
        .cfi_startproc
        push    %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        sub     $48, %rsp
        .cfi_adjust_cfa_offset 48
        call    *%rdi
        xor     %ebx, %ebx
        add     $48, %rsp
        .cfi_adjust_cfa_offset -48
        pop     %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size   _ZN4made4workB2v1El, . - _ZN4made4workB2v1El
        .section .note.GNU-stack, "", @progbits
