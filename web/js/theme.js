// Before anything is painted: light or dark, if the person chose one. Else the system's choice stands.
document.documentElement.dataset.theme = localStorage.getItem('skein.theme') ?? 'auto';
