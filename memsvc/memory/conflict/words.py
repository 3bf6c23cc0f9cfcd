"""The words that a claim is read with: groups of synonyms in English and Chinese, each group of one kind.

Purpose: two statements meet as concepts, not as letters, so that "reports to" meets "manager" and 生产 meets
"production". Kinds say what a difference means: another environment is another thing, another weekday is another value.

Format of a line: concepts are split by `;`, English and Chinese words of a concept by `/`, the two opposite sides of a
concept by `~`; a phrase is written with `_`. The first word names the concept.

Threading: built once at import, read only.

Rejected: a word-vector table (tens of MB for what a few hundred groups give), a segmenter's dictionary (EMBEDDING.md's
model already carries the rest of the meaning, as the cosine).
"""

from __future__ import annotations

from functools import lru_cache

# What the words of a statement are about (their difference means another thing) ...
QUALIFIERS = {
    "env": (
        "prod production/生产 正式环境 生产环境 线上环境 线上库 线上服务; staging preprod preview/预发 预发布; "
        "testenv qa/测试环境 测试库 测试服; devenv dev development/开发环境 开发库 开发机; localenv local "
        "locally/本地; ci"
    ),
    "platform": (
        "ios iphone ipad apple/苹果; android/安卓; mobile/移动端 手机端 手机; desktop/桌面端 桌面 电脑端; web "
        "website/网页 网站 网页端; windows; macos mac macbook imac osx; linux ubuntu; miniprogram/小程序; "
        "tablet/平板; watch/手表"
    ),
    "period": (
        "lastyear last_year/去年 上一年; thisyear this_year/今年 本年; nextyear next_year/明年; lastmonth "
        "last_month/上个月 上月; thismonth this_month/本月 这个月; q1 first_quarter/一季度 第一季度; q2 "
        "second_quarter/二季度 第二季度; q3 third_quarter/三季度 第三季度; q4 fourth_quarter/四季度 第四季度; "
        "before prior/之前 以前 前; after/之后 后; firsthalf/上半年; secondhalf/下半年; legacy old previous "
        "former/旧版 旧; newer/新版"
    ),
    "daypart": (
        "morning/早上 上午 早晨 清晨; noon midday lunchtime/中午; afternoon/下午; evening night nightly/晚上 "
        "夜里 夜间 夜班 晚; daytime/白天 白班"
    ),
    "season": (
        "summer/夏季 夏天; winter/冬季 冬天; spring/春季 春天; autumn fall/秋季 秋天; weekday workday/工作日; "
        "weekend/周末; holiday/节假日 假期 放假"
    ),
    "relation": (
        "mother mom mum/妈妈 母亲; father dad/爸爸 父亲; brother/哥哥 弟弟; sister/姐姐 妹妹; son/儿子; "
        "daughter/女儿; wife/妻子 太太 老婆; husband/丈夫 老公 先生; grandmother grandma/奶奶 外婆 姥姥; "
        "grandfather grandpa/爷爷 外公; friend/朋友; colleague coworker/同事; client customer/客户 顾客; "
        "partner/伴侣 对象; roommate/室友; boyfriend/男友; girlfriend/女友; uncle/叔叔 舅舅; aunt/阿姨 姑姑; "
        "cousin/表哥 表姐 表弟 表妹; neighbor neighbour/邻居; supplier vendor/供应商; employee staff/员工; "
        "intern/实习生; visitor guest/访客 客人; student/学生"
    ),
    "party": (
        "partya/甲方 甲; partyb/乙方 乙; partyc/丙方 丙; first_batch/第一批 第一; second_batch/第二批 第二; "
        "third_batch/第三批 第三"
    ),
    "side": (
        "left/左 左侧 左边; right/右 右侧 右边; front/前门; rear/后门; east/东 东侧 东区; west/西 西侧 西区; "
        "north/北侧 北区 北门; south/南侧 南区 南门; upper/上层; lower/下层; inbound return/回程 返程; "
        "outbound/去程; upload/上传; download/下载; read/读; write_path/写库; internal/内部 内网; "
        "external/外部 外网; connect/连接; primary master main_db/主库; replica slave secondary/从库"
    ),
    "extremum": (
        "min minimum least/最小 最低 最短 最少 至少; max maximum most at_most up_to no_more_than/不超过 "
        "不得超过 不能超过 最大 最高 最长 最多; average mean/平均; median; peak/峰值; p50; p95; p99; "
        "warning/告警; critical/严重"
    ),
    "tier": (
        "free/免费版 免费; basic/基础版 普通会员; pro premium/专业版 高级版; team_plan/团队版; "
        "enterprise/企业版; gold/金卡 黄金; silver/银卡; vip; adult/成人; child_ticket/儿童; member/会员; "
        "trial/试用; economy/经济舱; business_class/商务舱; first_class/头等舱; standard/标准; senior/老人 "
        "老年; kids_only/少儿"
    ),
    "area": (
        "frontend front_end/前端; backend back_end/后端; dba/数据库管理; ops operations devops/运维; "
        "testing_team/测试组; design/设计; marketing/市场部 市场; sales/销售 销售部; finance accounting/财务; "
        "legal/法务; hr/人事 人力; logging/日志; metrics monitoring/监控 指标; tracing; billing/计费 账单; "
        "search/搜索; auth/鉴权 认证; login/登录; payroll/薪资; personal private/私人 个人; work_email/工作用; "
        "home/家 家里 家用; office/办公室 公司; kitchen/厨房; bedroom/卧室; master_bedroom/主卧; "
        "second_bedroom/次卧; living_room livingroom/客厅; bathroom/卫生间 浴室; garage/车库; study_room/书房; "
        "balcony/阳台; garden/花园"
    ),
    "region": (
        "us usa america american_region/美国 美区; eu europe european/欧洲 欧盟 欧区; china_region china "
        "chinese_region/中国 国内; overseas international/海外 国际 境外; asia apac/亚洲 亚太; uk "
        "britain/英国; germany/德国; france/法国; japan/日本; india/印度; brazil/巴西; korea/韩国; "
        "canada/加拿大; australia/澳大利亚; italy/意大利; spain/西班牙; norway/挪威"
    ),
    "school": (
        "math mathematics/数学; physics/物理; chemistry/化学; biology/生物; history/历史; literature/语文 "
        "文学; geography/地理"
    ),
}

# ... and what they say about it (a difference means another value).
VALUES = {
    "plang": (
        "python py; golang go; java; javascript js; typescript ts; rust; cpp c++; csharp c#; ruby; php; "
        "kotlin; swift; scala; bash shell; perl; elixir; lua; dart; nodejs node"
    ),
    "nlang": (
        "english/英文 英语; chinese mandarin/中文 汉语 普通话; japanese/日文 日语; french/法文 法语; "
        "german/德文 德语; spanish/西班牙语 西语; korean/韩语 韩文; italian/意大利语; portuguese/葡萄牙语; "
        "russian/俄语; cantonese/粤语; arabic/阿拉伯语"
    ),
    "db": (
        "postgresql postgres pg; mysql; mariadb; sqlite; mongodb mongo; oracle; sqlserver; redis; memcached; "
        "cassandra; dynamodb; clickhouse; elasticsearch es; opensearch; solr; tidb; bigquery; snowflake; "
        "duckdb; lmdb; neo4j; cockroachdb"
    ),
    "queue": ("kafka; rabbitmq; nats; pulsar; sqs; rocketmq; celery; activemq"),
    "cloud": (
        "aws amazon/亚马逊云; gcp google_cloud/谷歌云; azure/微软云; aliyun alibaba_cloud/阿里云; "
        "tencentcloud/腾讯云; huaweicloud/华为云; heroku; vercel; netlify; flyio; digitalocean; cloudflare"
    ),
    "tool": (
        "jenkins; github_actions; gitlab; github; bitbucket; terraform; ansible; kubernetes k8s; docker; "
        "swarm; nomad; argocd; nginx; apache; caddy; webpack; vite; npm; yarn; pnpm; pip; poetry; uv; black; "
        "ruff; flake8; eslint; prettier; pytest; unittest; jest; vitest; mocha; react; vue; angular; svelte; "
        "redux; zustand; mobx; flutter; swiftui; graphql; rest restful; grpc; soap; websocket; polling/轮询; "
        "vim; emacs; vscode vs_code; intellij; pycharm; slack; ms_teams; zoom; discord; notion; confluence; "
        "jira; trello; asana; stripe; paypal; adyen; wechatpay/微信支付; alipay/支付宝; datadog; prometheus; "
        "grafana; sentry; launchdarkly; consul; vault; okta; auth0; django; flask; fastapi; rails; tailwind; "
        "bootstrap; chrome; firefox; safari; excel; word_doc; gmail; outlook; dropbox; figma; sketch; ie "
        "internet_explorer ie11; makefile; gitbook; yuque/语雀; feishu/飞书; dingtalk/钉钉; wechat/微信"
    ),
    "format": (
        "json; xml; yaml; toml; csv; markdown md; html; pdf; plain_text/纯文本; protobuf; parquet; table "
        "tabular/表格; bullet_list list bullet bulleted bullet_point/列表 清单; paragraph prose/段落 文字; "
        "bar_chart/柱状图; line_chart/折线图; pie_chart/饼图; code_block/代码块; uuid; integer/整数; "
        "paper/纸质; electronic/电子"
    ),
    "color": (
        "red/红色; blue/蓝色; green/绿色 浅绿色; white/白色; black_color/黑色; yellow/黄色; gray grey/灰色; "
        "pink/粉色; purple/紫色; orange_color/橙色; beige/米色; brown/棕色; warm_white/暖白; cool_white/冷白"
    ),
    "weekday": (
        "monday mon mondays/周一 星期一 礼拜一 每周一 下周一 上周一 周一到; tuesday tue/周二 星期二 礼拜二 "
        "每周二 下周二 上周二 周二到; wednesday wed/周三 星期三 礼拜三 每周三 下周三 上周三 周三到; thursday "
        "thu/周四 星期四 礼拜四 每周四 下周四 上周四 周四到; friday fri/周五 星期五 礼拜五 每周五 下周五 "
        "上周五 周五到; saturday sat/周六 星期六 礼拜六 每周六 下周六 上周六 周六到; sunday sun/周日 每周日 "
        "周天 星期日 星期天"
    ),
    "freq": (
        "daily every_day/每天 每日; weekly every_week/每周; biweekly fortnightly every_two_weeks/每两周 双周; "
        "monthly every_month/每月 每个月 按月; quarterly/每季度; yearly annually annual every_year/每年 按年; "
        "hourly/每小时"
    ),
    "place": (
        "beijing/北京; shanghai/上海; shenzhen/深圳; guangzhou/广州; hangzhou/杭州; chengdu/成都; "
        "nanjing/南京; wuhan/武汉; xian/西安; suzhou/苏州; tianjin/天津; chongqing/重庆; hongkong "
        "hong_kong/香港; taipei/台北; singapore/新加坡; tokyo/东京; osaka/大阪; kyoto/京都; seoul/首尔; "
        "london/伦敦; paris/巴黎; berlin/柏林; munich/慕尼黑; hamburg/汉堡; frankfurt/法兰克福; vienna/维也纳; "
        "prague/布拉格; madrid/马德里; barcelona/巴塞罗那; lisbon/里斯本; porto; rome/罗马; milan/米兰; "
        "florence/佛罗伦萨; amsterdam/阿姆斯特丹; dublin/都柏林; zurich/苏黎世; stockholm/斯德哥尔摩; "
        "oslo/奥斯陆; copenhagen/哥本哈根; helsinki/赫尔辛基; warsaw/华沙; moscow/莫斯科; newyork new_york "
        "nyc/纽约; boston/波士顿; chicago/芝加哥; seattle/西雅图; sanfrancisco san_francisco/旧金山; "
        "losangeles los_angeles/洛杉矶; denver/丹佛; austin/奥斯汀; toronto/多伦多; vancouver/温哥华; "
        "sydney/悉尼; melbourne/墨尔本; dubai/迪拜; mumbai/孟买; virginia/弗吉尼亚; oregon/俄勒冈; "
        "ireland/爱尔兰; bangkok/曼谷; yunnan/云南; hainan/海南; lyon/里昂; dalian/大连; qingdao/青岛; "
        "xiamen/厦门; ningbo/宁波; wuxi/无锡; hefei/合肥; zhengzhou/郑州; changsha/长沙; shenyang/沈阳; "
        "harbin/哈尔滨; jinan/济南; kunming/昆明; fuzhou/福州; dongguan/东莞; zhuhai/珠海; jiaxing/嘉兴; "
        "kunshan/昆山; sanya/三亚; guiyang/贵阳; nanchang/南昌; taiyuan/太原; xinjiang/新疆; tibet/西藏; "
        "cologne/科隆; leipzig/莱比锡; stuttgart/斯图加特; athens/雅典; istanbul/伊斯坦布尔; "
        "budapest/布达佩斯; brussels/布鲁塞尔; geneva/日内瓦; houston/休斯敦; dallas/达拉斯; atlanta/亚特兰大; "
        "miami/迈阿密; montreal/蒙特利尔; saopaulo sao_paulo/圣保罗; jakarta/雅加达; manila/马尼拉; "
        "hanoi/河内; kualalumpur kuala_lumpur/吉隆坡; rotterdam/鹿特丹; antwerp/安特卫普; nice_city/尼斯"
    ),
    "tz": ("beijing_time utc+8 gmt+8/北京时间 东八区; utc; gmt; pst; cet; est; local_time/本地时间 当地时间"),
    "job": (
        "nurse/护士; doctor/医生 大夫; teacher/老师 教师; engineer developer programmer/工程师 程序员 开发者; "
        "designer/设计师; lawyer/律师; architect/架构师 建筑师; accountant/会计; manager_job/经理; chef "
        "cook/厨师; pilot/飞行员; writer/作家; driver/司机; analyst/分析师; product_manager/产品经理"
    ),
    "drink": (
        "coffee/咖啡; tea/茶; latte/拿铁; americano/美式 美式咖啡; espresso/浓缩; milk/牛奶; beer/啤酒; "
        "wine/红酒; water/水; juice/果汁; cola coke/可乐"
    ),
    "food": (
        "mango/芒果; egg/鸡蛋; shrimp prawn/虾; beef/牛肉; pork/猪肉; lamb mutton/羊肉; fish/鱼; chicken/鸡肉; "
        "noodle/面条; rice/米饭; bread/面包; porridge/粥; apple_fruit/苹果味; chocolate/巧克力; nut nuts/坚果; "
        "gluten/麸质; soy/大豆; wheat/小麦; cilantro coriander/香菜; sushi/寿司; pizza/披萨; hotpot/火锅; "
        "cheese/奶酪; strawberry/草莓; blueberry/蓝莓; banana/香蕉; olive/橄榄; onion/洋葱; garlic/大蒜; "
        "tomato/番茄; lactose/乳糖; oat oats/燕麦; dessert/甜品 甜食; ramen/拉面"
    ),
    "currency": ("dollar usd/美元; euro eur/欧元; pound gbp/英镑; yuan rmb cny/人民币; yen jpy/日元"),
    "temperature_unit": ("celsius/摄氏; fahrenheit/华氏"),
    "seat": ("window_seat window_seats by_the_window/靠窗; aisle_seat aisle aisle_seats/靠过道 过道"),
    "room": ("double_bed/大床房; twin/双床房; hotel/酒店; guesthouse homestay airbnb/民宿"),
    "indent": ("tab/制表符; space spaces/空格"),
    "case": ("camelcase camel_case/驼峰; snakecase snake_case/下划线"),
    "level": ("debug; info; warn; error_level; critical_level"),
    "branch": ("master_branch; main_branch main; trunk; develop"),
}

# Opposite sides of one thing: the second side is the first one denied.
POLES = (
    "allow allowed permit permitted permissible may can be_able_to/允许 可以 能 ~ forbid forbidden ban banned "
    "prohibit prohibited disallow disallowed cannot cant mustnt/禁止 不许 不得 不能 不准 不可 严禁 勿; like "
    "love enjoy prefer fond favor favour fan/喜欢 爱 偏好 偏爱 喜爱 热爱 ~ dislike hate detest loathe "
    "avoid/讨厌 厌恶 反感 不爱; enable enabled turned_on switched_on on_state/开启 启用 打开 开着 ~ disable "
    "disabled turned_off switched_off off/关闭 停用 禁用 关掉 关; short brief concise terse compact "
    "succinct/短 简短 简洁 简单 精简 简明 简略 简要 短一点 尽量短 ~ long longer lengthy detailed verbose "
    "thorough full_detail in_depth full_context/长 长一点 详细 详尽 仔细 完整 冗长; formal/正式 严肃 ~ casual "
    "informal friendly relaxed/随意 轻松 活泼 口语; dark night_mode/深色 暗色 夜间模式 黑暗 ~ light_theme "
    "light bright/浅色 亮色 明亮; mandatory required compulsory must obligatory/必须 必填 强制 ~ optional/可选 "
    "选填; public open_source/公开 开源 ~ private_repo private closed_source/私有 保密 闭源; paid/付费 收费 ~ "
    "free_of_charge/不收费; single unmarried/单身 未婚 ~ married/已婚 结婚 成家; open reopened unfrozen/开放 ~ "
    "freeze frozen closed halt pause/冻结 关门 暂停 停止; before_explanation conclusion_first/先给结论 ~ "
    "after_explanation/最后给结论; sync synchronous/同步 ~ async asynchronous/异步; indoor indoors/室内 ~ "
    "outdoor outdoors/户外 室外; hot/热 ~ cold iced/冷 冰; spicy/辣 ~ mild/清淡; vegetarian vegan "
    "meatless/素食 素食者 吃素 ~ meat meat_eater omnivore/吃肉 肉 荤; smoke smoker/抽烟 吸烟 ~ nonsmoker/戒烟; "
    "british/英式 ~ american/美式拼写; monolith monolithic/单体 ~ microservice micro_service/微服务; online "
    "remote remotely/线上 线上办公 远程 居家 ~ onsite on_site in_person/现场 线下 到岗; manual manually "
    "by_hand/手动 人工 ~ automatic automatically auto/自动; accept approve/接受 同意 批准 ~ reject decline "
    "refuse/拒绝 驳回; include included with_vat/包含 含 ~ exclude excluded without_vat/不含; "
)

# Ordinary words with more than one spelling.
GENERIC = (
    "user/用户; speak talk/说 讲 会说; answer reply replies respond response/回答 回复 答复 答案; explanation "
    "explain/解释 讲解 说明; summary summaries summarize/总结 摘要 汇总; report/报告; weekly_report/周报; "
    "daily_report/日报; email mail e-mail/邮件 邮箱; comment/注释; document documentation doc docs/文档; code "
    "source_code/代码; commit_message/提交信息; commit/提交; review reviewed reviewer/评审 审查; "
    "code_review/代码评审; approval approve approved approver sign_off/审批 批准 签字 通过; deploy deployment "
    "release rollout ship launch go_live/部署 发布 发版 上线; test testing/测试; unit_test/单元测试; "
    "database/数据库 库; cache caching/缓存; queue message_queue/消息队列 队列; service/服务; server machine "
    "host/服务器 机器; cluster/集群; datacenter data_center/数据中心 机房; repo repository/仓库; branch/分支; "
    "default/默认; port listen/端口; version/版本 版本号; api interface endpoint/接口; timeout time_out/超时; "
    "expire expiry expiration ttl lifetime/过期 有效期 到期 过期时间; session/会话; token/令牌; password "
    "passcode/密码; secret credential/密钥 凭证; log/日志; backup/备份; retain retention keep kept/保留; limit "
    "cap/限制 上限; rate_limit throttle/限流; request/请求; file/文件; size/大小; upload/上传; image picture "
    "photo/图片 照片; user_data/用户数据; index/索引; table_db/表; row/行; config configuration setting/配置 "
    "设置; feature/功能; flag switch/开关; feature_flag/功能开关; bug defect/故障 缺陷; cause caused "
    "reason/原因; error/错误; performance/性能; latency/延迟 耗时; throughput/吞吐 吞吐量; monitor/监控; "
    "timezone time_zone/时区; timestamp/时间戳; time/时间; date/日期; minute/每分钟 分钟; second_time/每秒 秒; "
    "hour_time/每小时 小时; day; year; week; birthday born/生日 过生日; age years_old/岁 年龄; name named "
    "called/名字 叫 名叫 称呼; phone phone_number/手机号 电话 电话号码; address/地址; live lives reside "
    "resident based located location/住 居住 住在 位于 区域; move relocate migrate/搬 搬到 迁 迁到 迁移; work "
    "works employed job profession occupation joined join/工作 上班 职业 任职 入职 就职; company employer "
    "firm/公司 企业; headquarters/总部; manager boss supervisor reports_to report_to team_lead leader/经理 "
    "主管 上司 领导 组长; owner owned in_charge charge responsible handle lead own/负责 负责人 归; "
    "ceo/首席执行官; team group/团队 组 小组; project/项目; codename code_name/代号 项目代号; product/产品; "
    "contract/合同; order/订单; batch/批 这批; quantity amount count number_of total/数量 总额 金额 一共 总共; "
    "number/编号 号码; price cost costs fee charge_amount/价格 定价 价 费用 收费标准; pay payment "
    "paid_out/支付 付款 付; salary pay_day payday wage/工资 发薪 发薪日; budget/预算; invoice bill/发票 账单; "
    "refund/退款; return_goods/退货; shipping deliver delivery shipment/运费 发货 配送 快递; discount/折扣 "
    "优惠; rent/房租 租金; mortgage/房贷; insurance/保险; car_insurance/车险; tax vat/税; account/账户 账号; "
    "bank/银行; saving savings/储蓄 存款; subscription plan/订阅 套餐; meeting appointment meet/会议 开会; "
    "weekly_meeting/周会; standup stand-up/站会; meeting_room room/会议室 房间; exam test_exam/考试 考; "
    "homework/作业; course class lesson/课 课程; study learn/学 学习; school/学校; score/分数; favorite "
    "favourite/最喜欢 最爱; goal target/目标; deadline due/截止 截止日期; window/窗口; opening hour hours/营业 "
    "营业时间; holiday_leave vacation/年假 休假; trip travel journey/旅行 旅游 出差; flight fly plane/航班 "
    "飞机 飞; hotel_stay/入住; ticket/票 门票; seat/座位 位置; passport/护照; visa/签证; allergy "
    "allergic/过敏; peanut/花生; seafood shellfish/海鲜; penicillin/青霉素; pollen/花粉; medicine drug "
    "medication pill/药; dose dosage/剂量 服用 吃药; blood_pressure hypertension/血压 高血压; "
    "blood_sugar/血糖; blood_type/血型; weight weigh/体重 重量; height tall/身高; pain hurt/疼 痛; diet/饮食; "
    "eat eats food/吃; drink drinks/喝; alcohol/酒; exercise workout gym/健身 锻炼 运动; run running jog/跑步 "
    "跑; swim swimming/游泳; hike hiking/爬山 徒步; piano/钢琴; guitar/吉他; music/音乐; movie film/电影; book "
    "reading/书 看书; game/游戏; dog puppy/狗; cat kitten/猫; pet/宠物; child kid children kids/孩子 小孩; "
    "baby/宝宝 婴儿; parent/父母; family/家人 家庭; marry marriage wedding/婚礼 结婚; house apartment "
    "flat/房子 公寓; car vehicle/车 汽车; bike bicycle/自行车; train/火车 高铁; bus/公交; router/路由器; "
    "wifi/无线网; phone_device phone smartphone/手机; laptop notebook computer/笔记本 电脑; theme mode/主题 "
    "模式; editor/编辑器; font/字体; emoji emoticon/表情; tone/语气 口吻; style/风格; format_word/格式; "
    "unit/单位; indentation indent/缩进; spelling/拼写; docstring; type_hint type_annotation/类型注解; example "
    "sample/示例 例子; risk/风险; plan_word/计划; source_link link/来源 链接; chart graph/图表 图; "
    "temperature/温度; language/语言; currency_word/货币; country/国家; city/城市; floor storey/楼 层; "
    "level/级别 等级; enter attend join_in/参加; system/系统; street/街; door/门; light_lamp lamp/灯; wall/墙; "
    "sofa couch/沙发; air_conditioner aircon/空调; bed/床; sleep bed_time go_to_bed/睡 睡觉; wake "
    "wake_up/起床; breakfast/早餐 早饭; lunch/午餐 午饭; dinner/晚餐 晚饭; support_help support helpdesk/客服 "
    "支持; hotline/热线; shop store/店 商店; website_word/官网; launch_event event/活动; hire hiring "
    "recruit/招聘 招; train_word training/培训; interview/面试; script/脚本; module/模块; library/库依赖; "
    "dependency/依赖; memory_ram ram memory/内存; disk storage/磁盘 存储; cpu core/核; thread/线程; "
    "replica_count replicas/副本; instance/实例; architecture/架构; framework/框架; state/状态; encrypt "
    "encryption/加密; certificate cert/证书; domain_name domain/域名; url link_url/链接地址; ip; gateway/网关; "
    "load_balancer/负载均衡; firewall/防火墙; permission access/权限; role/角色; merge_code merge/合并; "
    "push/推送; pr pull_request change_request/合并请求; hotfix/热修复; ticket_issue issue/工单; sprint/迭代; "
    "coverage/覆盖率; regression/回归; build/构建; identifier id ids/标识; cents; money/钱; "
    "personal_data/个人数据 个人信息; plaintext plain/明文; receipt/收据 小票; travel_expense expense/报销; "
    "overtime/加班; supervisor_sign director/总监; buy purchase/买 购买; sell sold/卖; visit/参观 去过; call "
    "calling/打电话; gift/礼物; interest_rate rate/利率 率; revenue/营收 收入; profit/利润; churn/流失; "
    "conversion/转化率; traffic qps/流量 并发; vote/投票; architecture_doc design_doc/设计文档; title/标题; "
    "author/作者; speaker_person speaker/主讲人 演讲者; patient/病人 患者; gate/登机口; parking park/停车; "
    "package_parcel parcel/包裹; step/步骤; conclusion/结论; process/过程"
)

# Verbs and frames that say little by themselves. The exclusive ones take one value at a time; the additive ones many.
EXCLUSIVE = (
    "be is are was were been/是 为 即; use uses used using utilize adopt via powered/用 使用 采用 用的是; at "
    "in_place/在; run runs hosted host_on deployed_on/部署在 托管 托管在 跑在; become became/成为; choose "
    "chose chosen pick picked select selected settle settled standardise standardize go_with went_with/选定 选 "
    "选择 定 定为 确定 选了 定了 选用; write written wrote/写 编写 写的 书写; set/设 设为 设置为; start starts "
    "begin/开始 开; end ends finish/结束; should/应该 应; store stored saved/存 存储 存放 存在; need needs "
    "require requires/需要 要 需; head_for/去; put/放; show display/显示 展示; drive drives/开车; belong/属于; "
    "format_verb formatted/排版; last lasts/持续; send sent/发 发送; read_verb; do/做; give/给"
)
ADDITIVE = (
    "have has had having own_thing/有 拥有 养 养了; supports support_verb/支持; know knows/懂 会; include_verb "
    "includes/包括; suffer/患有 患; plays play/玩 弹; visited/去过; also/也 还 同时 另外; contain_verb; add/加 "
    "附上 加上; mention/提到"
)
# Who says it and how it came about: no content, and no border between topic and value.
FRAME = (
    "decide decided decision agree agreed want wants wish would_like ask_for asked ask request_that say says "
    "said prefer_that conclude finally final plan_to going_to have_to has_to had_to we_will/决定 最终决定 要求 "
    "希望 想 想要 要 说 觉得 认为 规定 计划 打算 评审会"
)
STOP = (
    "a an the of to and or but that this these those it its he she his her they their them we our us i my me "
    "you your as with for from by on in at into so then there here than such be being am do does did done will "
    "would shall could might very really just please all any every each some more most other which who what "
    "where when how why because due per up out over about only own same s t let make sure get gets got say "
    "says said tell told ask asked note remember one both either always everywhere since think believe guess "
    "heard hear suppose maybe perhaps probably possibly apparently seem seems seemingly look looks rumor "
    "rumour has_it someone somebody people_say not_sure unsure certain supposedly presumably assume actually "
    "correction corrected sorry mistyped test_results again from_now_on now going_forward any_more anymore "
    "as_well too first_of_all change_of_plan still yet again already now whole within around like_this mr mrs "
    "ms dr"
)
STOP_HAN = (
    "的 了 和 与 或 就 都 吧 呢 啊 吗 把 被 对 从 到 于 及 等 很 太 更 最终 其 之 着 过 会 个 这 那 该 此 我 "
    "我们 你 您 他 她 它 们 里 上 中 内 时 时候 所有 一律 统一 全部 每个 已经 已 现在 关于 相关 有关 目前 当前 "
    "以后 今后 之后都 一直 总是 一般 平时 通常 比较 而 并 且 以 将 请 让 使 由 得 地 吃饭 进行 方面 部分 一下 "
    "些 一些 一点 有点 点 只 才 再 来 起 完 好 可 因为 理由 看中 因 所以 但 但是 如果 话 什么 怎么 多 新规定 "
    "新制度 记住 听说 据说 好像 似乎 大概 可能 也许 或许 我记得 记得 貌似 估计 印象中 传闻 有人说 应该是 更正 "
    "纠正 说错了 写错了 刚才 其实 听 新任 最近 曾 曾经 正在 正 本来 原来 原先 从今年起 从下月起 从下周起 "
    "从本月起 下周起 起来 说 个人 一位 一名 名 位 件 块 我的 咱们 咱 大家 全员 全组 团队 家 自己"
)

UNITS = {
    "money": (
        "yuan rmb cny dollar dollars usd euro euros eur pound pounds gbp yen cent cents/元 块 块钱 美元 欧元 "
        "人民币 分钱"
    ),
    "min": ("minute minutes min mins/分钟"),
    "sec": ("second seconds sec secs s/秒 秒钟"),
    "ms": ("ms millisecond milliseconds/毫秒"),
    "hour": ("hour hours h hr hrs/小时"),
    "day": ("day days/天"),
    "week": ("week weeks/周 个星期 星期"),
    "month": ("month months/个月"),
    "year": ("year years/年"),
    "kg": ("kg kilo kilos kilogram kilograms/公斤 千克 斤 吨"),
    "cm": ("cm centimeter/厘米"),
    "km": ("km kilometer kilometers/公里 千米"),
    "mg": ("mg milligram/毫克"),
    "byte": ("gb mb tb kb gib mib g m"),
    "degree": ("degree degrees/度"),
    "pct": ("percent/折"),
    "person": ("people person persons users engineers members guests/人 名 位 个人 口"),
    "piece": ("piece pieces item items/件 个 只 条 台 辆 本 张 箱 袋 份 双 套 行 笔 栏"),
    "times": ("time times/次 遍"),
    "floor": ("floor/楼 层"),
    "clock": ("oclock/点 点钟 点半"),
    "mday": ("/号 日"),
    "mon": ("/月"),
    "age": ("/岁"),
    "room": ("/号会议室 号楼 号线"),
    "char": ("word words character characters chars/字 位数 字符"),
    "thread": ("thread threads core cores replica replicas shard shards/线程 核 副本"),
}

_IRREGULAR = {
    "children": "child",
    "people": "people",
    "went": "go",
    "kept": "keep",
    "sold": "sell",
    "built": "build",
    "paid": "pay",
}


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """The word without its commonest English endings; lower case in, lower case out. Thread-safe."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("'s"):
        word = word[:-2]
    size = len(word)
    if size <= 3:
        return word
    if word.endswith("ies") and size > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "sis", "xis")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
