"""Questions of general knowledge that people like to try first, with short answers; alternatives as in intents.py."""

TRIVIA = """
How many days [are in|are there in|does] a week[| have]?|A week has 7 days.
How many days [are in|are there in|does] a year[| have]?|A year has 365 days, a leap year 366.
How many months [are in|are there in|does] a year[| have]?|A year has 12 months.
How many hours [are in|are there in|does] a day[| have]?|A day has 24 hours.
How many minutes [are in|are there in|does] an hour[| have]?|An hour has 60 minutes.
How many seconds [are in|are there in|does] a minute[| have]?|A minute has 60 seconds.
How many weeks [are in|are there in|does] a year[| have]?|A year has 52 weeks.
How many letters [are in|are there in|does] the alphabet[| have]?|The English alphabet has 26 letters.
How many planets are [there|in the solar system]?|There are 8 planets in the solar system.
How many continents are there[| in the world]?|There are 7 continents.
How many colours [are in|does] a rainbow[| have]?|A rainbow has 7 colours.
How many strings does a [guitar|violin] have?|A guitar has 6 strings, a violin has 4.
How many players [are in|has|does] a football team[| have]?|A football team has 11 players.
[What is|What's|Which is] the [largest|biggest] planet?|Jupiter is the largest planet.
[What is|What's|Which is] the smallest planet?|Mercury is the smallest planet.
[Which planet is|What planet is] closest to the sun?|Mercury is closest to the sun.
[Which planet is|What is] the red planet?|Mars is called the red planet.
[What is|What's|Which is] the [largest|biggest] ocean?|The Pacific is the largest ocean.
[What is|What's|Which is] the [largest|biggest] animal?|The blue whale is the largest animal.
[What is|What's|Which is] the tallest animal?|The giraffe is the tallest animal.
[What is|What's|Which is] the fastest animal?|The peregrine falcon is the fastest animal; on land it is the cheetah.
[What is|What's|Which is] the highest mountain?|Mount Everest is the highest mountain.
[What is|What's|Which is] the longest river?|The Nile is usually called the longest river.
[What is|What's|Which is] the [largest|biggest] country?|Russia is the largest country.
[Who wrote|Who is the author of] Hamlet?|William Shakespeare wrote Hamlet.
[Who wrote|Who is the author of] Romeo and Juliet?|William Shakespeare wrote Romeo and Juliet.
Who painted the Mona Lisa?|Leonardo da Vinci painted the Mona Lisa.
[Who was|Who is] [Albert Einstein|Einstein]?|Albert Einstein was a physicist. He found the theory of relativity.
[Who was|Who is] [Isaac Newton|Newton]?|Isaac Newton was a physicist. He described gravity.
[Who was|Who is] [William Shakespeare|Shakespeare]?|William Shakespeare was an English poet and playwright.
[Who was|Who is] [Ada Lovelace|Lovelace]?|Ada Lovelace wrote what many call the first computer program.
[Who was|Who is] [Alan Turing|Turing]?|Alan Turing was a mathematician and a founder of computer science.
[Who was|Who is] [Mozart|Beethoven|Bach]?|He was one of the great composers.
[Who was|Who is] the first man on the moon?|Neil Armstrong was the first man on the moon.
[At what temperature does water boil|When does water boil|What is the boiling point of water]?|Water boils at 100 degrees Celsius.
[At what temperature does water freeze|When does water freeze|What is the freezing point of water]?|Water freezes at 0 degrees Celsius.
What is water made of?|Water is made of hydrogen and oxygen.
Why is the sky blue?|Because air scatters blue light more than red light.
Why is grass green?|Because of chlorophyll, with which plants catch the light.
What do [bees|the bees] make?|Bees make honey.
What do cows [give|drink]?|Cows give milk and drink water.
What do [geese|ducks] eat?|They eat grass, grain and water plants.
Where does the sun rise?|The sun rises in the east.
Where does the sun set?|The sun sets in the west.
[What is|What's] the opposite of up?|The opposite of "up" is "down".
[Is the earth|Is the Earth] [flat|round]?|The Earth is round.
[What is|What's] [the moon|a moon]?|The moon goes round the Earth, about once a month.
[What is|What's] [the sun|a star]?|The sun is a star, a very hot ball of gas.
What is [AI|artificial intelligence]?|Artificial intelligence means programs that do what seems to need thinking.
What is [a language model|an LLM]?|A language model predicts the next piece of a text. I am a very small one.
What is [a transformer|a neural network|machine learning|deep learning]?|It belongs to machine learning: programs that learn from examples. I cannot explain more than that.
What is [an API|HTTP|JSON|a server|a GPU|a CPU]?|It is a word from computing, but I am too small to explain it well.
What is [C++|Python|JavaScript|Rust|Linux|Java]?|It is well known to programmers, but I am too small to explain it.
[What is|What's] the answer to [the ultimate question|the great question]?|42.
[Which|What] came first, the chicken or the egg?|That is an old riddle. I would say: the goose.
[Tell me|Do you know] [a fun fact|something interesting|a fact|an interesting fact|something|something funny]?|Geese fly in a V because each bird uses the lift of the one ahead.
[Tell me|Do you know] [something about geese|a fact about geese]?|A group of geese in flight is called a skein, on the ground a gaggle.
What sound does a goose make?|A goose honks.
[What is|What's] a goose?|A goose is a large water bird with a long neck.
[What is|What's] [pi|the number pi]?|Pi is about 3.14159.
How many legs does a [chair|table] have?|Most have 4 legs.
[Can penguins|Do penguins] fly?|No, penguins cannot fly, but they swim very well.
[What is|What's] the [first|last] letter of the alphabet?|The first letter is a, the last is z.
Say the alphabet.|a b c d e f g h i j k l m n o p q r s t u v w x y z
[Is|Are] [a whale|whales] [a fish|fish]?|No, whales are mammals.
What is [love|happiness|friendship|time]?|That is a question for people, not for a small model.
""".strip().split("\n")
