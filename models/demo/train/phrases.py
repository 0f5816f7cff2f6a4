"""Words and sentences of the phrasebook in English, French and Chinese."""
from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """`gender` is m or f; `measure` is the Chinese measure word; `plural` is the English one where it is irregular."""
    en: str
    fr: str
    gender: str
    zh: str
    measure: str = "个"
    plural: str = ""
    fr_plural: str = ""


def _nouns(text: str) -> list[Noun]:
    return [Noun(*line.split()) for line in text.strip().split("\n")]


THINGS = _nouns("""
book livre m 书 本
key clé f 钥匙 把
bag sac m 包 个
phone téléphone m 手机 部
map carte f 地图 张
ticket billet m 票 张
umbrella parapluie m 雨伞 把
hat chapeau m 帽子 顶 hats chapeaux
coat manteau m 大衣 件 coats manteaux
car voiture f 汽车 辆
bicycle vélo m 自行车 辆
watch montre f 手表 块 watches
camera caméra f 相机 台
computer ordinateur m 电脑 台
lamp lampe f 灯 盏
chair chaise f 椅子 把
knife couteau m 刀 把 knives couteaux
fork fourchette f 叉子 把
spoon cuillère f 勺子 把
glass verre m 杯子 个 glasses
bottle bouteille f 瓶子 个
pen stylo m 钢笔 支
letter lettre f 信 封
newspaper journal m 报纸 份 newspapers journaux
picture photo f 照片 张
shirt chemise f 衬衫 件
dress robe f 裙子 条 dresses
suitcase valise f 箱子 个
blanket couverture f 毯子 条
mirror miroir m 镜子 面
guitar guitare f 吉他 把
ball balle f 球 个
flower fleur f 花 朵
dog chien m 狗 只
cat chat m 猫 只
bird oiseau m 鸟 只 birds oiseaux
horse cheval m 马 匹 horses chevaux
""")

PLACES = _nouns("""
station gare f 车站
hotel hôtel m 酒店
museum musée m 博物馆
bank banque f 银行
market marché m 市场
hospital hôpital m 医院
pharmacy pharmacie f 药店
school école f 学校
library bibliothèque f 图书馆
restaurant restaurant m 饭馆
church église f 教堂
airport aéroport m 机场
park parc m 公园
beach plage f 海滩
bakery boulangerie f 面包店
theatre théâtre m 剧院
cinema cinéma m 电影院
bridge pont m 桥
castle château m 城堡
swimming-pool piscine f 游泳池
post-office poste f 邮局
supermarket supermarché m 超市
university université f 大学
garden jardin m 花园
""")

FOODS = _nouns("""
bread pain m 面包
cheese fromage m 奶酪
rice riz m 米饭
fish poisson m 鱼
meat viande f 肉
soup soupe f 汤
milk lait m 牛奶
tea thé m 茶
coffee café m 咖啡
water eau f 水
wine vin m 葡萄酒
beer bière f 啤酒
juice jus m 果汁
salad salade f 沙拉
chocolate chocolat m 巧克力
sugar sucre m 糖
salt sel m 盐
butter beurre m 黄油
honey miel m 蜂蜜
chicken poulet m 鸡肉
jam confiture f 果酱
ice-cream glace f 冰淇淋
""")

PEOPLE = _nouns("""
mother mère f 妈妈
father père m 爸爸
brother frère m 哥哥
sister sœur f 姐姐
friend ami m 朋友
teacher professeur m 老师
son fils m 儿子
daughter fille f 女儿
grandmother grand-mère f 奶奶
grandfather grand-père m 爷爷
uncle oncle m 叔叔
aunt tante f 阿姨
husband mari m 丈夫
wife femme f 妻子
neighbour voisin m 邻居
doctor médecin m 医生
""")

# English, French masculine, French feminine, Chinese
ADJECTIVES = [("new", "nouveau", "nouvelle", "新"), ("old", "vieux", "vieille", "旧"), ("red", "rouge", "rouge", "红色"),
              ("green", "vert", "verte", "绿色"), ("black", "noir", "noire", "黑色"), ("white", "blanc", "blanche", "白色"),
              ("blue", "bleu", "bleue", "蓝色"), ("yellow", "jaune", "jaune", "黄色")]
STATES = [("big", "grand", "grande", "大"), ("small", "petit", "petite", "小"), ("beautiful", "beau", "belle", "漂亮"),
          ("heavy", "lourd", "lourde", "重"), ("dirty", "sale", "sale", "脏"), ("expensive", "cher", "chère", "贵")]
MOODS = [("happy", "heureux", "heureuse", "高兴"), ("tired", "fatigué", "fatiguée", "累"),
         ("ill", "malade", "malade", "病了"),
         ("busy", "occupé", "occupée", "忙"), ("sad", "triste", "triste", "难过")]
CITIES = [("Paris", "Paris", "巴黎"), ("London", "Londres", "伦敦"), ("Berlin", "Berlin", "柏林"), ("Beijing", "Pékin", "北京"),
          ("Shanghai", "Shanghai", "上海"), ("Rome", "Rome", "罗马"), ("Madrid", "Madrid", "马德里"), ("Tokyo", "Tokyo", "东京"),
          ("Lyon", "Lyon", "里昂"), ("Geneva", "Genève", "日内瓦"), ("Moscow", "Moscou", "莫斯科"), ("Vienna", "Vienne", "维也纳")]
DAYS = [("Monday", "lundi", "星期一"), ("Tuesday", "mardi", "星期二"), ("Wednesday", "mercredi", "星期三"),
        ("Thursday", "jeudi", "星期四"), ("Friday", "vendredi", "星期五"), ("Saturday", "samedi", "星期六"),
        ("Sunday", "dimanche", "星期日")]
LANGUAGES = [("English", "anglais", "英语"), ("French", "français", "法语"), ("Chinese", "chinois", "中文"),
             ("German", "allemand", "德语"), ("Spanish", "espagnol", "西班牙语"), ("Italian", "italien", "意大利语"),
             ("Japanese", "japonais", "日语"), ("Russian", "russe", "俄语")]
NUMBERS = [("two", "deux", "两"), ("three", "trois", "三"), ("four", "quatre", "四"), ("five", "cinq", "五"),
           ("six", "six", "六"),
           ("seven", "sept", "七"), ("eight", "huit", "八"), ("nine", "neuf", "九"), ("ten", "dix", "十"),
           ("twelve", "douze", "十二")]

FIXED = """Hello.|Bonjour.|你好。
Good evening.|Bonsoir.|晚上好。
Good night.|Bonne nuit.|晚安。
Good morning, everyone.|Bonjour à tous.|大家早上好。
Goodbye.|Au revoir.|再见。
See you tomorrow.|À demain.|明天见。
See you soon.|À bientôt.|回头见。
Thank you.|Merci.|谢谢。
Thank you very much.|Merci beaucoup.|非常感谢。
You are welcome.|De rien.|不客气。
Please.|S'il vous plaît.|请。
Excuse me.|Excusez-moi.|打扰一下。
I am sorry.|Je suis désolé.|对不起。
Yes.|Oui.|是的。
No.|Non.|不是。
How are you?|Comment allez-vous ?|你好吗？
I am fine.|Je vais bien.|我很好。
What is your name?|Comment vous appelez-vous ?|你叫什么名字？
Nice to meet you.|Enchanté.|很高兴认识你。
I do not understand.|Je ne comprends pas.|我不明白。
I do not know.|Je ne sais pas.|我不知道。
Please speak slowly.|Parlez lentement, s'il vous plaît.|请说慢一点。
Can you help me?|Pouvez-vous m'aider ?|你能帮助我吗？
Where are the toilets?|Où sont les toilettes ?|洗手间在哪里？
How much is it?|C'est combien ?|多少钱？
It is too expensive.|C'est trop cher.|太贵了。
I am hungry.|J'ai faim.|我饿了。
I am thirsty.|J'ai soif.|我渴了。
I am cold.|J'ai froid.|我觉得冷。
The bill, please.|L'addition, s'il vous plaît.|请结账。
Enjoy your meal.|Bon appétit.|请慢用。
Have a good trip.|Bon voyage.|一路平安。
Happy birthday!|Joyeux anniversaire !|生日快乐！
Happy new year!|Bonne année !|新年快乐！
Good luck!|Bonne chance !|祝你好运！
Congratulations!|Félicitations !|恭喜！
What time is it?|Quelle heure est-il ?|现在几点？
Where do you live?|Où habitez-vous ?|你住在哪里？
I love you.|Je t'aime.|我爱你。
I am lost.|Je suis perdu.|我迷路了。
Call a doctor.|Appelez un médecin.|请叫医生。
It is raining.|Il pleut.|下雨了。
It is snowing.|Il neige.|下雪了。
The weather is nice.|Il fait beau.|天气很好。
It is cold today.|Il fait froid aujourd'hui.|今天很冷。
It is hot today.|Il fait chaud aujourd'hui.|今天很热。
I agree.|Je suis d'accord.|我同意。
Of course.|Bien sûr.|当然。
Wait a moment.|Attendez un moment.|等一下。
Come in.|Entrez.|请进。
Sit down, please.|Asseyez-vous, s'il vous plaît.|请坐。
Let's go.|Allons-y.|我们走吧。
The train is late.|Le train est en retard.|火车晚点了。
The goose flies south.|L'oie vole vers le sud.|大雁向南飞。
The sun is shining.|Le soleil brille.|阳光明媚。
Where does the bus stop?|Où s'arrête le bus ?|公共汽车在哪里停？
We are friends.|Nous sommes amis.|我们是朋友。
They are at home.|Ils sont à la maison.|他们在家。
I am a student.|Je suis étudiant.|我是学生。
Welcome!|Bienvenue !|欢迎！"""
