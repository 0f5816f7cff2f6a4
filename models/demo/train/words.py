"""Word lists of the generator."""

NAMES = """
Anna Ben Clara David Ella Felix Grace Hugo Iris Jack Kate Liam Mia Noah Olga Paul Quinn Rosa Sam Tina Uma Victor Wendy
Xavier Yara Zoe Alice Bob Carol Dan Emma Frank Gina Henry Ivan Julia Karl Lena Max Nina Oscar Petra Ravi Sara Tom Ulla
Vera Will Yuki Zara Adam Bella Chris Diana Eric Fiona George Helen Isaac Jane Kevin Laura Mark Nora Owen Peter Rita
Simon Tara Viktor Wanda Amir Bruno Chen Dora Elias Farah Gita Hans Ines Jonas Kira Leo Maya Nils Omar Priya Rafael
Sofia Theo Vikram Wei Ali Amy Anton Arthur Carla Cora Daniel Edith Eva Finn Fred Gloria Hannah Ida Jacob James Jim Joan
John Joseph Judy Kim Lars Lily Lisa Louis Lucas Lucy Luis Lukas Maria Marie Martin Mary Matt Michael Mike Mila Mina
Mona Nadia Nick Nicole Oliver Otto Pablo Pavel Rachel Robert Robin Ron Rosie Ruth Sally Sandra Sarah Sean Stella Steve
Sven Tim Toby Tony Walter Yusuf Ada Agnes Ahmed Alan Alex Andrea Bao Beth Boris Carmen Cesar Dario Deniz Ed Elena Emil
Esther Fatima Gabriel Greta Hana Heidi Hiro Igor Irina Jan Jasmin Jorge Josef Kai Kenji Ling Luca Magda Marta Mei Milo
Mira Nikolai Nora Pia Rosalind Samir Sasha Selma Sonia Tariq Tessa Ursula Vincent Xin Yasmin Zelda""".split()

_FEMALE = """
Anna Clara Ella Grace Iris Kate Mia Olga Rosa Tina Uma Wendy Yara Zoe Alice Carol Emma Gina Julia Lena Nina Petra Sara
Ulla Vera Zara Bella Diana Fiona Helen Jane Laura Nora Rita Tara Wanda Dora Farah Gita Ines Kira Maya Priya Sofia Amy
Carla Cora Edith Eva Gloria Hannah Ida Joan Judy Lily Lisa Lucy Maria Marie Mary Mila Mina Mona Nadia Nicole Rachel
Rosie Ruth Sally Sandra Sarah Stella Ada Agnes Beth Carmen Elena Esther Fatima Greta Hana Heidi Irina Jasmin Ling Magda
Marta Mei Mira Pia Rosalind Selma Sonia Tessa Ursula Yasmin Zelda""".split()
PRONOUNS = {name: "she" if name in _FEMALE else "he" for name in NAMES}
HE_NAMES = [name for name in NAMES if PRONOUNS[name] == "he"]
SHE_NAMES = [name for name in NAMES if PRONOUNS[name] == "she"]

CITIES = """
Oslo Paris Berlin London Madrid Rome Vienna Prague Warsaw Lisbon Dublin Athens Helsinki Stockholm Copenhagen Brussels
Amsterdam Zurich Geneva Munich Hamburg Lyon Marseille Milan Naples Turin Venice Florence Porto Seville Valencia
Barcelona Krakow Budapest Bucharest Sofia Belgrade Zagreb Riga Vilnius Tallinn Minsk Kyiv Moscow Istanbul Ankara Cairo
Tunis Lagos Nairobi Accra Dakar Boston Chicago Denver Seattle Dallas Houston Miami Toronto Montreal Vancouver Lima
Quito Bogota Santiago Havana Tokyo Kyoto Osaka Seoul Beijing Shanghai Delhi Mumbai Chennai Jakarta Manila Hanoi Bangkok
Sydney Melbourne Perth Auckland Wellington Reykjavik Bergen Graz Bern Basel Cologne Dresden Leipzig Bremen""".split()

COUNTRIES = """
Norway France Germany England Spain Italy Austria Poland Portugal Ireland Greece Finland Sweden Denmark Belgium
Switzerland Hungary Romania Bulgaria Croatia Turkey Egypt Kenya Ghana Canada Mexico Peru Brazil Chile Japan China India
Vietnam Thailand Australia Iceland""".split()

COLOURS = """
red blue green yellow orange purple pink brown black white grey silver gold turquoise violet crimson beige teal navy
lilac""".split()

ANIMALS = """
fox bear wolf rabbit mouse owl frog cat dog horse goose duck swan eagle crow tiger lion elephant turtle hedgehog
squirrel otter beaver badger deer donkey goat sheep cow pig hen parrot penguin dolphin whale seal crab snail spider ant
bee butterfly lizard snake dragon monkey panda koala camel""".split()

PETS = "dog cat rabbit hamster parrot goldfish turtle pony guinea-pig canary snake lizard".split()

FOODS = """
pizza pasta soup rice bread cheese salad sushi curry noodles pancakes waffles chocolate honey cake apples bananas
cherries grapes strawberries potatoes tomatoes carrots mushrooms dumplings olives nuts ice-cream yoghurt sandwiches
beans lentils tacos""".split()

DRINKS = "tea coffee water milk juice lemonade cocoa cider soda".split()

FRUITS = "apple pear plum fig lemon orange banana cherry peach grape mango melon apricot lime kiwi".split()

THINGS = """
lamp key book map ring coin bell drum kite boat rope ladder bucket basket candle mirror clock hat scarf coat boot cup
bowl spoon plate chair table box bag letter feather stone shell pearl flute violin trumpet ball doll puzzle blanket
pillow umbrella lantern compass telescope wheel hammer shovel broom brush pencil crayon""".split()

JOBS = """
teacher doctor nurse baker farmer pilot painter writer singer dancer cook driver gardener carpenter plumber lawyer
engineer programmer designer librarian musician scientist sailor tailor waiter judge journalist photographer""".split()

HOBBIES = """
painting reading swimming hiking cooking gardening chess fishing dancing cycling running singing photography knitting
climbing skiing sailing drawing camping baking""".split()

INSTRUMENTS = "piano guitar violin flute drums trumpet cello harp saxophone accordion clarinet".split()

LANGUAGES = """
English French German Spanish Italian Chinese Japanese Korean Russian Arabic Portuguese Dutch Polish Greek Turkish
Swedish Hindi""".split()

MONTHS = """January February March April May June July August September October November December""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SEASONS = "spring summer autumn winter".split()

PLACES = """in the drawer|under the bed|on the table|behind the door|in the kitchen|in the garden|on the shelf|in the blue box
|under the sofa|in the car|on the roof|in the cellar|next to the window|in my pocket|in the cupboard|on the desk|in the attic
|beside the lamp|in the fridge|under the stairs|in the red bag|on the balcony|in the garage|behind the curtain
|on top of the wardrobe""".replace("\n", "").split("|")

# Words for spelling and counting letters that need not have a token of their own.
SPELLING = """
planet giraffe volcano pumpkin bicycle rocket castle guitar magnet pirate window yellow zebra tunnel bottle candle
dentist hammock island jungle kitten lemon mirror napkin oyster pencil quartz ribbon saddle turnip violet walnut anchor
blossom cactus desert engine falcon galaxy harbor insect jacket kettle ladder muffin needle orchid parcel quiver raisin
shovel thunder velvet whistle acrobat balloon cabbage diamond emerald fiddle garlic helmet iceberg jasmine kingdom
lantern meadow nectar octopus peacock quarrel rainbow sandal tractor unicorn vampire weather almond banner copper
donkey eclipse feather gravel hurdle igloo jigsaw koala lobster marble nugget olive pebble radish salmon timber vessel
wizard amber basket carpet dolphin easel fabric goblet hazel ivory jewel knight locket mosaic nickel oxygen puzzle
rascal siren tulip urchin violin willow axle beacon canyon dagger ember fossil glacier hermit ink jaguar kayak lagoon
mantle nomad opal prism quill raven spruce tiara umbrella valley wagon yacht zipper apple bread chair dance eagle flute
ghost house juice knife lunch mouse night ocean piano queen river snake table uncle voice water zero strawberry
computer elephant keyboard mountain hospital dinosaur butterfly chocolate umbrella telephone crocodile pineapple
alphabet sandwich kangaroo hamburger spaghetti dictionary adventure language server memory stream session model token
state prompt neural network goose feather python kernel banana cherry orange school friend family garden summer winter
spring autumn morning evening doctor teacher engine library museum theater airport station bridge street market window
cousin sister brother mother father wonder dragon princess farmer soldier sailor painter abbey acorn adder alcove
alpaca amulet antler apron arbor armada aspen atlas attire aurora axiom bagel bamboo barley bassoon bazaar beaker
bellow bison blazer bonnet border bramble brandy breeze bridle bronze bubble buckle budget bugle bunker cadet camera
canary carafe cargo cashew catkin cavern cedar celery cement chalk charm cheese cherub chisel cinder citrus clamp clay
cliff clover cobalt cobra cocoon comet condor coral cosmos cotton cradle crater cricket crown crumb crystal cuckoo
cymbal daisy damson dapple decoy denim dewdrop dingo dinghy ditch dome dragonfly drizzle dungeon dwelling earring echo
elbow elixir enamel epoch escort ether evergreen fable fanfare fathom fennel ferret ferry fiber filter finch flannel
flask fleece flicker flint foal forge fountain freckle fringe frost funnel gadget gallop gander garnet gazelle geyser
ginger glimmer glove gopher gourd granite grotto grove gully gutter halo harness harvest hatch haven hawk heather
hickory hive hollow hoof hornet hound icicle iguana impala inlet iris jackal jasper javelin jersey jetty jockey juniper
kernel kestrel kiosk kipper lacquer lagoon larch lark lattice lava ledge lemur lentil lichen locust lotus lynx magpie
mallet mammoth mango maple marigold marsh meteor midge mimosa mink molar moose moss mural musket mustard mutton narwhal
nebula nettle newt nougat nutmeg oasis oboe ocelot onyx opera orbit osprey otter paddle pagoda pansy papaya parade
parsley pasture peanut pebble pelican petal pigeon pillar pistachio plateau plaza plume pollen poncho poppy porcupine
portal prairie pretzel primrose puffin python quail quarry quiche racoon raft rapier raspberry reef relic reptile
rhubarb riddle robin rodeo rosemary rubble ruby saffron sailboat sapphire sardine satchel satin scallop scarab scepter
seaweed sequoia sesame shamrock sherbet shrimp sickle sieve silk skunk sleigh sloth smelt sorbet sparrow spinach sprout
squash squid stallion starling stencil stork sunset swamp swallow sycamore tadpole tapir tarragon teapot termite
thicket thimble thistle thrush thyme tinsel toffee topaz torch totem treacle trellis trinket trout truffle tundra
turban turret tweed twilight twine vanilla vellum velour vortex vulture waffle walrus warbler weasel wharf whisker
wicket willow windmill woodland yarrow yodel zephyr zinc zither""".split()

OPPOSITES = {"hot": "cold", "big": "small", "tall": "short", "old": "young", "fast": "slow", "happy": "sad",
             "light": "dark",
             "hard": "soft", "wet": "dry", "full": "empty", "early": "late", "loud": "quiet", "rich": "poor",
             "clean": "dirty",
             "strong": "weak", "open": "closed", "near": "far", "high": "low", "wide": "narrow", "thick": "thin",
             "heavy": "light", "deep": "shallow", "good": "bad", "up": "down", "left": "right", "day": "night",
             "black": "white", "yes": "no", "always": "never", "first": "last", "true": "false", "win": "lose",
             "buy": "sell", "push": "pull", "start": "stop", "love": "hate", "hello": "goodbye", "easy": "difficult",
             "sweet": "sour", "brave": "afraid", "north": "south", "east": "west", "front": "back", "inside": "outside"}

CAPITALS = {"France": "Paris", "Germany": "Berlin", "England": "London", "Spain": "Madrid", "Italy": "Rome",
            "Austria": "Vienna", "Poland": "Warsaw", "Portugal": "Lisbon", "Ireland": "Dublin", "Greece": "Athens",
            "Finland": "Helsinki", "Sweden": "Stockholm", "Denmark": "Copenhagen", "Norway": "Oslo",
            "Belgium": "Brussels", "Switzerland": "Bern", "Hungary": "Budapest", "Romania": "Bucharest",
            "Bulgaria": "Sofia", "Croatia": "Zagreb", "Turkey": "Ankara", "Egypt": "Cairo", "Kenya": "Nairobi",
            "Ghana": "Accra", "Canada": "Ottawa", "Mexico": "Mexico City", "Peru": "Lima", "Brazil": "Brasilia",
            "Chile": "Santiago", "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi", "Vietnam": "Hanoi",
            "Thailand": "Bangkok", "Australia": "Canberra", "Iceland": "Reykjavik", "Russia": "Moscow",
            "Ukraine": "Kyiv", "Latvia": "Riga", "Estonia": "Tallinn", "Lithuania": "Vilnius", "Serbia": "Belgrade",
            "the Netherlands": "Amsterdam", "Cuba": "Havana", "South Korea": "Seoul", "Indonesia": "Jakarta",
            "the Philippines": "Manila", "the United States": "Washington", "New Zealand": "Wellington",
            "Argentina": "Buenos Aires", "Colombia": "Bogota", "Ecuador": "Quito", "Tunisia": "Tunis",
            "Senegal": "Dakar", "the Czech Republic": "Prague", "the United Kingdom": "London"}

TYPICAL_COLOURS = {"the sky": "blue", "grass": "green", "snow": "white", "a banana": "yellow", "a tomato": "red",
                   "coal": "black", "a lemon": "yellow", "blood": "red", "milk": "white", "an elephant": "grey",
                   "the sun": "yellow", "the sea": "blue", "a frog": "green", "a carrot": "orange",
                   "chocolate": "brown",
                   "a cucumber": "green", "a strawberry": "red", "a raven": "black", "a flamingo": "pink"}

SOUNDS = {"cow": "moos", "dog": "barks", "cat": "meows", "duck": "quacks", "sheep": "bleats", "lion": "roars",
          "horse": "neighs", "frog": "croaks", "owl": "hoots", "bee": "buzzes", "snake": "hisses", "goose": "honks",
          "pig": "oinks", "wolf": "howls", "mouse": "squeaks", "hen": "clucks"}

LEGS = {"dog": 4, "cat": 4, "spider": 8, "ant": 6, "bee": 6, "horse": 4, "bird": 2, "goose": 2, "snake": 0, "cow": 4,
        "frog": 4, "crab": 10, "fish": 0, "hen": 2, "human": 2, "butterfly": 6}
