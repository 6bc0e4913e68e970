import sys,re
from bs4 import BeautifulSoup
for p in sys.argv[1:]:
    s=BeautifulSoup(open(f'/work/read/html/chapters/{p}.html').read(),'html.parser')
    gd=[h for h in s.find_all(re.compile('^h[1-6]$')) if 'Go deeper' in h.get_text()]
    print(p,len(gd),[ (h.name,h.parent.name,h.parent.get('class')) for h in gd])
    for t in s.find_all(['script','style']): t.decompose()
    m=s.find('main') or s.body
    print(m.name,m.get('class'))
    figs=[f for f in m.find_all(['figure','img','svg','canvas']) if not gd or f in gd[0].find_all_previous()]
    print([ (f.name,f.get('class'),f.get('id')) for f in figs][:40])
