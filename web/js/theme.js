// Runs before the first paint: applies the user's theme; by default the system's theme applies.
document.documentElement.dataset.theme = localStorage.getItem('skein.theme') ?? 'auto';
