// Keyboard shortcuts.

/** The code of the key of a shortcut with Alt; null if the user means the text: on some systems, Alt writes other
 * characters and moves the cursor. */
export function shortcutOf({ code, key }, typing) {
  const letter = /^Key([A-Z])$/.exec(code)?.[1];
  return typing && key.toUpperCase() !== letter ? null : code;
}
