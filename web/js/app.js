document.querySelector('main').textContent='hi';
