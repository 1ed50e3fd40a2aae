// jitlog/bundled_capstone.c: a library must have a source. What is in this one is capstone's archive (CMakeLists.txt).
