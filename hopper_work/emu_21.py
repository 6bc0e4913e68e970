from emu import *
import spec; spec.LEAST = 1
check(Cfg(21,128,128,3,CM=2,PP=True), 200, 264, 400, 0.5, -2.0, sms=4)
check(Cfg(21,128,64,3,CM=1,PP=False,ST=0,rows=False,dtype='bfloat16',out='bfloat16'), 300, 131, 200, 0.5, 0, sms=8, settings=SETTINGS[1:])
check(Cfg(21,128,192,3,CM=2,PP=True,ST=1), 200, 200, 400, 0.5, 0, sms=4, settings=SETTINGS[:1])
check(Thin(64,64,4,1,4), 70, 72, 520, 0.5, -2.0, settings=SETTINGS[2:])
# pack
comp = compile_source(Path(FILES[21][0]).read_text(), 'pack<half>', 'sm_90a', (), 'x.cu')
for rows, cols, off in ((5, 33, 0), (7, 1001, 3), (3, 8, 1), (1, 5, 0), (2, 9, 7)):
    big = np.random.default_rng(1).random(rows*cols+off).astype('f2'); src = big[off:].reshape(rows, cols)
    pitch = -(-cols//8)*8; out = np.full((rows, pitch), np.nan, 'f2')
    f = ptx.Module(comp.ptx, comp.arch).get_function(comp.name)
    l = f((-(-cols//1024), rows, 1), (128,1,1), (np.int32(rows), np.int32(cols), src, np.int32(pitch), out), races=True)
    print('pack', rows, cols, off, (out[:, :cols] == src).all(), l.hazards)
