"""Texts for the tests of the secrets filter: templates, drawn values, hard negatives.

Values are drawn or put together from parts, so that no scanner takes this file for a leak. All of them are invented.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

NEGATIVES = Path(__file__).parent / "sensitive_negatives.txt"
ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
DIGITS = string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"


def drawn(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


# name: the parts of a key; a pair is an alphabet and a size. Prefixes stand in two pieces.
VENDORS: dict[str, tuple[str | tuple[str, int], ...]] = {
    "openai": ("s", "k-", (ALNUM, 48)),
    "openai project": ("s", "k-proj-", (URLSAFE, 64)),
    "anthropic": ("s", "k-ant-api03-", (URLSAFE, 93), "AA"),
    "openrouter": ("s", "k-or-v1-", (HEX, 64)),
    "deepseek": ("s", "k-", (HEX, 32)),
    "aws": ("AK", "IA", (UPPER, 16)),
    "github": ("gh", "p_", (ALNUM, 36)),
    "github app": ("gh", "s_", (ALNUM, 36)),
    "github fine": ("github", "_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": ("gl", "pat-", (URLSAFE, 20)),
    "google": ("AI", "za", (URLSAFE, 35)),
    "google oauth": ("GOC", "SPX-", (URLSAFE, 28)),
    "slack": ("xo", "xb-", (DIGITS, 12), "-", (DIGITS, 13), "-", (ALNUM, 24)),
    "slack hook": ("hooks.sl", "ack.com/services/T", (UPPER, 8), "/B", (UPPER, 10), "/", (ALNUM, 24)),
    "stripe": ("sk", "_live_", (ALNUM, 24)),
    "stripe restricted": ("rk", "_live_", (ALNUM, 24)),
    "hugging face": ("h", "f_", (ALNUM, 34)),
    "npm": ("np", "m_", (ALNUM, 36)),
    "pypi": ("py", "pi-AgEIcHlwaS5vcmc", (URLSAFE, 70)),
    "aliyun": ("LT", "AI5t", (ALNUM, 20)),
    "tencent": ("AK", "ID", (ALNUM, 32)),
    "sendgrid": ("S", "G.", (URLSAFE, 22), ".", (URLSAFE, 43)),
    "twilio": ("S", "K", (HEX, 32)),
    "telegram": (("123456789", 10), ":A", "A", (URLSAFE, 33)),
    "digitalocean": ("do", "p_v1_", (HEX, 64)),
    "groq": ("gs", "k_", (ALNUM, 52)),
    "xai": ("x", "ai-", (ALNUM, 80)),
    "perplexity": ("pp", "lx-", (ALNUM, 48)),
    "shopify": ("shp", "at_", (HEX, 32)),
    "databricks": ("da", "pi", (HEX, 32)),
    "linear": ("lin", "_api_", (ALNUM, 40)),
    "figma": ("fi", "gd_", (URLSAFE, 40)),
    "grafana": ("gl", "sa_", (ALNUM, 32), "_", (HEX, 8)),
    "docker": ("dck", "r_pat_", (URLSAFE, 27)),
    "mailgun": ("ke", "y-", (LOWER, 32)),
    "mailchimp": ((HEX, 32), "-us", ("12345678", 1)),
    "discord": ("M", (ALNUM, 23), ".", (URLSAFE, 6), ".", (URLSAFE, 27)),
    "vault": ("hv", "s.", (ALNUM, 24)),
    "notion": ("nt", "n_", (ALNUM, 46)),
    "atlassian": ("ATA", "TT3xFfGF0", (URLSAFE, 60)),
    "zhipu": ((HEX, 32), ".", (ALNUM, 16)),
    "supabase": ("sb", "p_", (HEX, 40)),
}


def vendor_key(rng: random.Random, name: str) -> str:
    return "".join(part if isinstance(part, str) else drawn(rng, *part) for part in VENDORS[name])


def password(rng: random.Random) -> str:
    word = partial(rng.choice, "sunny Quartz river Mango tiger blue Falcon kite Happy panda Dragon cloud".split())
    forms: tuple[Callable[[], str], ...] = (
        lambda: word() + drawn(rng, DIGITS, 4),
        lambda: drawn(rng, ALNUM, 3) + rng.choice("#@!$%&*") + drawn(rng, ALNUM, 3) + drawn(rng, DIGITS, 2) + "x",
        lambda: f"{word()}-{word()}-{rng.randint(20, 99)}",
        lambda: word().capitalize() + "@" + drawn(rng, DIGITS, 4),
        lambda: (
            drawn(rng, "abcdefgh", 2) + drawn(rng, DIGITS, 3) + drawn(rng, "PQRSTU", 2) + drawn(rng, DIGITS, 1) + "k"
        ),
    )
    return rng.choice(forms)()


def mobile(rng: random.Random) -> str:
    return "1" + rng.choice("3456789") + drawn(rng, DIGITS, 9)


def with_luhn(digits: str) -> str:
    """The digits and their Luhn check digit, computed the slow way."""
    for last in DIGITS:
        number = digits + last
        doubled = sum(sum(divmod(2 * int(d), 10)) for d in number[-2::-2])
        if (sum(map(int, number[-1::-2])) + doubled) % 10 == 0:
            return number
    raise AssertionError("one of ten digits fits")


def card(rng: random.Random) -> str:
    prefix, size = rng.choice(
        (("4", 16), ("53", 16), ("62", 19), ("62", 16), ("6217", 19), ("37", 15), ("6011", 16), ("2305", 16))
    )
    return with_luhn(prefix + drawn(rng, DIGITS, size - 1 - len(prefix)))


def grouped(number: str) -> str:
    if len(number) == 15:
        return f"{number[:4]} {number[4:10]} {number[10:]}"
    return " ".join(number[i : i + 4] for i in range(0, len(number), 4))


def cn_id(rng: random.Random, *, right: bool = True) -> str:
    """A Chinese id number with a right or a wrong check digit."""
    area = rng.choice(("110105", "310104", "440305", "510107", "330106"))
    body = f"{area}{rng.randint(1950, 2015)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}{drawn(rng, DIGITS, 3)}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check = "10X98765432"[sum(int(d) * w for d, w in zip(body, weights, strict=True)) % 11]
    return body + (check if right else rng.choice([d for d in DIGITS if d != check]))


KEY_FRAMES = r"""
我的key是VALUE，别弄丢
use VALUE for the eval runs
VALUE
export KEY=VALUE
令牌：VALUE。
把VALUE写进配置
{"auth":"VALUE"}
url?x=1&k=VALUE&y=2
the token ("VALUE") leaked
`VALUE`
记一下\nVALUE\n谢谢
curl -H 'X-Auth: VALUE' https://api.acme.io
""".strip().split("\n")
PASSWORD_FRAMES = r"""
密码是VALUE
数据库密码是 VALUE
密码：VALUE
root密码:VALUE
口令 VALUE
登录密码改成VALUE了
WiFi密码已经改成 VALUE，记得告诉大家
wifi 密码 VALUE
我的邮箱密码是VALUE，帮我记住
密码现在是VALUE
后台账号 admin 密码 VALUE
账号密码：admin / VALUE
账号:root 密码:VALUE
新密码设为 VALUE
服务器口令换成了VALUE
用 VALUE 作为密码
VALUE是服务器的密码
密码（生产）：VALUE
密码「VALUE」
测试环境的密码从 VALUE 改成别的了
解压密码：VALUE
开机密码是“VALUE”
vpn 密码=VALUE
密码还是 VALUE 没变
登陆密码 : VALUE
password: VALUE
Password = VALUE
my password is VALUE
the wifi password is VALUE
pwd=VALUE
pass: VALUE
PGPASSWORD=VALUE psql -h db
password for the staging db is VALUE
the password to my laptop is VALUE
the admin password on prod: VALUE
DB_PASSWORD=VALUE
db.password=VALUE
"password": "VALUE"
{'password': 'VALUE'}
{"user":"bob","passwd":"VALUE"}
<password>VALUE</password>
--password VALUE
--password=VALUE
mysql -uroot -pVALUE shop
curl -u admin:VALUE https://x.io
sshpass -p 'VALUE' ssh root@10.0.0.1
I changed my password to VALUE
changed the root password from VALUE to something else
password was reset to VALUE yesterday
login: bob password: VALUE
user bob, password VALUE
credentials: admin/VALUE
log in with admin / VALUE
VALUE is the root password
use VALUE as the wifi password
passphrase: VALUE
the passcode is VALUE
my password's VALUE
Password\n: VALUE
| password | VALUE |
password -> VALUE
spring.datasource.password=VALUE
userPassword: VALUE
dbPass = "VALUE"
ALTER USER app IDENTIFIED BY 'VALUE'
postgres://app:VALUE@db.internal:5432/orders
mysql://root:VALUE@10.0.0.3:3306/shop
mongodb+srv://svc:VALUE@cluster0.x1.mongodb.net/
redis://:VALUE@cache:6379/0
amqp://guest:VALUE@mq.acme.cn//
https://bob:VALUE@git.acme.io/repo.git
jdbc:mysql://h/db?user=root&password=VALUE&ssl=true
Server=db;Database=x;User Id=sa;Password=VALUE;
连接串 postgresql+psycopg://u:VALUE@pg:5432/x 存一下
host=db user=app password=VALUE dbname=x
密码我改成了VALUE
密碼：VALUE
口令是VALUE
支付密码是VALUE
家里的门锁密码设成VALUE
他的登录密码叫VALUE
密码给你：VALUE
管理员密码为VALUE，请妥善保管
旧密码VALUE，新密码也一样
路由器 密码→VALUE
ssh root:VALUE@192.168.1.10
""".strip().split("\n")
LABELLED_FRAMES = r"""
api_key = "VALUE"
apikey: VALUE
API key is VALUE
the api key for maps is VALUE
secret: VALUE
client_secret=VALUE
SECRET_KEY='VALUE'
access_token=VALUE
token: VALUE
令牌是VALUE
密钥：VALUE
访问密钥 VALUE
appSecret: VALUE
AppSecret=VALUE
我的 API key：VALUE
微信 AppSecret 是 VALUE
Authorization: Bearer VALUE
-H 'Authorization: token VALUE'
Bearer VALUE
x-api-key: VALUE
"accessKeySecret": "VALUE"
auth_token: VALUE
webhook secret VALUE
JWT_SECRET=VALUE
signing key: VALUE
秘钥=VALUE
export OPENWEATHER_API_KEY=VALUE
https://api.x.io/v1?apikey=VALUE&q=1
私有令牌：VALUE
""".strip().split("\n")
MOBILE_FRAMES = r"""
手机VALUE
客户王总VALUE今天会来
打我电话：VALUE
VALUE是我的新号码
call me at VALUE
联系人李雷，VALUE。
phone=VALUE
我的微信同号 VALUE
{"mobile":"VALUE"}
VALUE（张三）
收货：北京 王芳 VALUE
快递放门口，VALUE
账号 VALUE 已注册
""".strip().split("\n")
CARD_FRAMES = r"""
卡号 VALUE
银行卡VALUE
card number VALUE
信用卡号：VALUE
VALUE
打款到VALUE这张卡
my visa is VALUE
工资卡 VALUE
pay with VALUE exp 12/27
{"card":"VALUE"}
""".strip().split("\n")
ID_FRAMES = r"""
身份证VALUE
身份证号：VALUE
证件号码 VALUE，报销用
VALUE
id card VALUE
张三，VALUE，男
实名信息是VALUE吗
{"idcard":"VALUE"}
""".strip().split("\n")
# `~` parts what must not stand in one piece.
PASSWORDS = r"""
密码是123~456
门锁密码 258~013
支付密码是880~321
密码：sunf~lower
口令：opens~esame
PIN is 48~21
my PIN: 09~17
手机锁屏密码 147~258
保险箱密码为 903~718
pass~word: "correct horse battery staple"
密码是“芝麻~开门”
password: mono~ceros
WiFi password is 'blueb~erries'
网盘提取码：x7~k2
passp~hrase is correct horse battery staple
passwor~d=hunter
pin码是 77~19
WIFI名字 TP-LINK_5G，密码 wang20~180808
家里 wifi：HomeNet / 8866~aabb
邮箱密码我设的是Lind~a1990
my laptop password's been changed to Green~42tea
pw for the NAS = n4s~B0x!
Netflix login is bob@x.com / movie~2Night
Netflix 账号 bob@x.com 密码 movie~2night
the safe's code is password Tige~r#55
root/Pa~ss@2023 是测试机的账号密码
oracle口令=~sys_Man9er
zip 解压密码为 2024r~eport!
门禁密码 58~20#
PIN码：36~92
the alarm PIN is 73~05
密码改成 FlyH~igh77 了，旧的作废
jenkins 登录密码：jenkins~-2024-Q3
ftp://up:load99@file~s.acme.cn/in
rabbitmq amqps://svc:x9!kQ2@mq:567~1/vh
clickhouse://default:ch8Pwd@~10.1.1.1:9000/db
REDIS_URL=redis://default:A9xxkz2@redis:63~79
MYSQL_ROOT_PASSWORD: toor~1234
passwd='~letmein9'
DATABASE_PASSWORD="p@ssW~0rd!23"
学校教务系统密码 s20210~314lin
忘了告诉你，密码换成 Sprin~g2024! 了
Remember: my bank app passcode is 941~735
密码就是我生日 1990~0307
sudo 密码默认 ubun~tu123
Your temporary password is Zk9#~tt21
admin:admi~n123 登录后台
user: lin, pass: 1q2w~3e4r
它的管理密码是：Chin~a@123
密 码：Abc1~23456
服务器 10.0~.0.8 root 密码 Qwe123!@#
爸的邮箱密码：laowa~ng1958
公司 VPN 账号 lin.w，密码 Vpn#~2025
路由器后台密码还没改，是 admi~n888
数据库用户 app，口令 G7k!~pQ2z
我们把管理员密码统一成了 Hello~2025!
银行卡取款密码 520~131
steam密码:gabeN~_1999
MongoDB 密码：m0ng0~-Pr0d
登录用 lin@acme.cn / Zxcv~!234
密码设置成了a~bcDEF123
老板的wifi密码是boss~8888
电脑开机密码 qwer~ty12
帮我记住1~2306密码:train2024
my router's admin password: netG~ear55
set the db password to BlueW~hale_7
The password we agreed on is tango-F~oxtrot9
hotel wifi pw: gues~t4411
use password Kitt~en!42 for the demo account
default creds are admin / Adm~1n!
email: a@b.co password: SunR~ise77
db_pass: 'x8L~q!wE'
spring:\n  datasource:\n    username: app\n    password: Pr0d~-2291\n
redis-cli -h cache -a Red1~sPw99 ping
oracle://scott:tiger99@ora:152~1/xe
smtp://mailer:S3nd!t@smtp.acme.cn:5~87
sqlserver://sa:Str0ngPass~!@10.0.0.9:1433
the garage code PIN is 28~46
Passwort: Winte~r2024!
the login password has been changed to Autu~mn#88
VPN: user lin, password is 'Kx7~$mm2'
解锁密码是 314~159
密码从 oldP~ass1 换成 newPass2 了
BASIC_AUTH_PAS~SWORD=test-4f2K
公司邮箱 lin@acme.cn 密码Acm~e@2023
NAS 的管理员口令为 synol~ogy#9
记一下：门锁密码是731~942
gitlab 密码暂时是 Temp~1234!
老师说机房密码都是 stud~ent01
客户的 ERP 密码：Erp_2~024_x
the password is hun~ter2
""".strip().split("\n")
PHONES = r"""
座机 010-62~345678 转 801
公司电话 0755-2~6543210
（021）5~8881234
010 8888~6666 是他办公室
text +1-212-~555-0187
call +44 20 79~46 0958
my number is (415) 555-~2671
reach me at 415-55~5-2671
415.55~5.2671 is my cell
+852 91~23 4567
+81 90-123~4-5678
+49 151 2345~6789
WhatsApp +91 98~765 43210
电话 6234~5678
phone: 21255~50187
mobile 07911 123~456
ring 020 79~46 0958
+1 (555) 123-~4567
tel: 0086-139-~1234-5678
+86 139 12~34 5678
１３８００~１３８０００
138-00~13-8000
138 00~13 8000
电话是一三八零零~一三八零零零
138001~3\u200b8000
电话 0571-8~7654321
家里固话 028-86~123456
fax: +~33 1 42 68 53 00
call my mom at 617 555 01~34
+61 4~12 345 678
有事打13901~234567找我
13901~234567
My cell: +1 (650) 253-~0000
妈妈的手机号换成 186-12~34-5678 了
紧急联系人 李四 151 12~34 5678
Dr. Chen's number is 617-25~3-1000
邻居家座机 0571-8~8886666
Tel：021-62~345678
dentist (212) 736-~5000
微信/电话：17712~345678
+861391~2345678
WhatsApp me on +55 11 91234~-5678
接收验证码的号是 16688~886666
老婆电话136~66668888
房东：李姐 188 01~01 2233
请回电 021-50~607080
My new cell is 917-55~5-0142
text Bob at +1 408 996 10~10
张医生 0531-8~2169114
收件人电话：+86 15012~345678
UK mobile: +44 7911 123~456
plumber's phone: 206.55~5.0175
手机号后来换成19~912345678
司机师傅：170123456~78（尾号3388）
""".strip().split("\n")
IDS = r"""
SSN 536-9~0-4399
my social security number is 536-9~0-4399
ssn: 5369~04399
护照号 E123~45678
passport number is E123~45678
NI number AB 1~2 34 56 C
national insurance number AB 1~2 34 56 C
Aadhaar 23~41 2341 2346
CPF 111.444~.777-35
香港身份证 A1234~56(3)
HKID A1234~56(3)
台湾身份证 A1234~56789
NRIC S123~4567D
SIN 1~30 692 544
PESEL 44051~401359
My Social Security Number: 219-0~9-4321
Passport No. EJ12~34567 expires 2030
""".strip().split("\n")


def positives(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """(kind, text, value); the value is empty where the text is a fixed one."""
    for name in VENDORS:
        for frame in rng.sample(KEY_FRAMES, 5):
            yield from _filled("api_key", [frame], [vendor_key(rng, name)])
    yield from _filled("password", PASSWORD_FRAMES, [password(rng) for _ in range(3)])
    yield from _filled("api_key", LABELLED_FRAMES, [drawn(rng, ALNUM, 32), drawn(rng, HEX, 32), drawn(rng, ALNUM, 24)])
    yield from _filled("phone", MOBILE_FRAMES, [mobile(rng), mobile(rng)])
    cards = [card(rng), card(rng)]
    yield from _filled("bank_card", CARD_FRAMES, [*cards, *map(grouped, cards)])
    yield from _filled("national_id", ID_FRAMES, [cn_id(rng), cn_id(rng)])
    for kind, texts in (("password", PASSWORDS), ("phone", PHONES), ("national_id", IDS)):
        for text in texts:
            yield kind, _plain(text.replace("~", "")), ""


def _filled(kind: str, frames: list[str], values: list[str]) -> Iterator[tuple[str, str, str]]:
    for frame in frames:
        for value in values:
            yield kind, _plain(frame).replace("VALUE", value), value


def _plain(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\u200b", "\u200b")


def negatives() -> list[str]:
    """Texts with nothing to hide, each near to something that has."""
    return [_plain(text) for text in NEGATIVES.read_text("utf-8").splitlines()]
