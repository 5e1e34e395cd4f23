interface RowContent {
  /** What it is, or a field in which it is written. */
  readonly title: string | HTMLElement;
  readonly lines: readonly string[];
  readonly action?: {
    readonly label: string /** Says of which row it is, for whoever hears the button alone. */;
    readonly spoken: string;
    readonly run: () => void;
  };
}

/** One line of a list of the own account: what it is, and one thing to do with it. */
export function listRow({ title, lines, action }: RowContent): HTMLElement {
  const row = document.createElement('li');
  row.className = 'device';
  const words = document.createElement('div');
  for (const [index, text] of [title, ...lines].entries()) {
    const line = document.createElement('span');
    // A Latin name keeps its own direction and the place of the sentence.
    const isolated = document.createElement('bdi');
    isolated.append(text);
    line.append(isolated);
    if (index) line.className = 'sub';
    words.append(line);
  }
  row.append(words);
  if (!action) return row;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'link';
  button.textContent = action.label;
  button.setAttribute('aria-label', action.spoken);
  button.addEventListener('click', action.run);
  row.append(button);
  return row;
}
