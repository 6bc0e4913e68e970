import sys; sys.path.insert(0,'hopper_work')
from emu import *
check(Cfg(20,128,128,3,CM=2,PP=True), 200, 264, 136, 0.5, -2.0, sms=4)
check(Cfg(20,128,128,3,CM=2,CN=2,PP=False), 400, 264, 136, 0.5, -2.0, sms=4)
check(Cfg(20,256,128,3,CN=2,PP=False,rows=False,dtype='bfloat16',out='bfloat16'), 300, 264, 200, 0.5, 0, sms=2)
check(Cfg(20,128,192,3,CM=2,PP=True,ST=1), 200, 200, 136, 0.5, 0, sms=2, settings=SETTINGS[2:3])
check(Cfg(20,64,256,3,CM=4,PP=True,ST=2), 300, 264, 136, 0.5, 0, sms=4, settings=SETTINGS[2:3])
