from emu import *
check(Cfg(17,128,128,3), 200, 264, 200, 0.5, -2.0)
check(Cfg(17,128,256,3,rows=False,dtype='bfloat16',out='bfloat16'), 200, 261, 72, 0.5, 0, settings=SETTINGS[1:3])
check(Cfg(18,128,128,3), 200, 264, 400, 0.5, -2.0)
check(Cfg(18,128,256,3,rows=False,dtype='bfloat16',out='bfloat16'), 200, 261, 72, 0.5, 0, settings=SETTINGS[1:3])
for pp in (False, True):
    check(Cfg(19,128,128,3,PP=pp), 200, 392, 400, 0.5, -2.0)
    check(Cfg(19,128,128,3,PP=pp,rows=False,dtype='bfloat16',out='bfloat16'), 100, 101, 72, 0.5, 0, settings=SETTINGS[1:3])
