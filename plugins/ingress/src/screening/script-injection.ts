/** Elements that run, load or submit something by being there. */
const ELEMENTS = new Set(
  'script iframe frame frameset object embed applet svg math style link meta base form input button textarea select keygen isindex video audio source img image body html head layer ilayer bgsound marquee details dialog template slot animate animatetransform set foreignobject xml xss import vmlframe use handler listener portal fencedframe a'.split(
    ' ',
  ),
);
/** Elements that a person who writes HTML may use; they count with an attribute that runs. */
const HARMLESS = new Set(
  'a img b i u p br em strong span div ul ol li h1 h2 h3 h4 h5 h6 table tr td th video audio source details image'.split(' '),
);
const HANDLER = /(?:^|[\s"'`/<;\0\x0b\x0c])on[a-z]{3,50}[\s\x0b\x0c]*=/i;
const KNOWN_HANDLER =
  /^on(?:abort|activate|afterprint|after\w+|animation\w+|aux\w+|before\w+|begin|blur|bounce|cancel|canplay\w*|cellchange|change|click|close|command|content\w+|contextmenu|controlselect|copy|cuechange|cut|data\w+|dbl\w+|deactivate|drag\w*|drop|durationchange|emptied|end|ended|error\w*|filterchange|finish|focus\w*|formchange|forminput|formdata|fullscreen\w+|gesture\w+|got\w+|hashchange|help|hover|input|invalid|key\w+|languagechange|layoutcomplete|load\w*|lose\w+|lost\w+|media\w+|message\w*|mouse\w+|move\w*|offline|online|open|orientation\w*|outofsync|pagehide|pageshow|paste|pause|play|playing|pointer\w+|popstate|progress|propertychange|ratechange|readystatechange|rejection\w+|repeat|reset|resize\w*|resume|reverse|row\w+|scroll\w*|search|seek\w*|select\w*|show|slotchange|start|stop|storage|submit|suspend|syncrestored|timeerror|timeupdate|toggle|touch\w+|track\w*|transition\w+|unhandled\w+|unload|urlflip|volumechange|waiting|webkit\w+|wheel|zoom)$/i;
/** `javascript:` however it is broken up by what browsers leave out. */
const SCHEME = /(?:j\s*a\s*v\s*a|v\s*b|l\s*i\s*v\s*e)\s*s\s*c\s*r\s*i\s*p\s*t\s*:/i;
/** What only a program in a browser speaks of. */
const OBJECTS = /\b(?:document|window|self|top|parent|frames|this|globalthis|location|navigator|navigation)\s*(?:\.|\[)\s*['"`\w$(]/i;
const DOM =
  /(?:document|window)\s*(?:\/\*[^*]*\*\/\s*)?\.\s*(?:\/\*[^*]*\*\/\s*)?(?:cookie|domain|body|write(?:ln)?|location|documentelement|getelement\w*|queryselector\w*|createelement|url|referrer|forms|alert|name|open|eval|onload|onerror|settimeout)\b|\b(?:self|window|top|parent|frames|this|globalthis|document)\s*\)?\s*(?:\/\*[^*]*\*\/\s*)?\[\s*(?:\/\*[^*]*\*\/\s*)?(?:['"`]|atob|\w+\()|\.(?:parentnode|innerhtml|outerhtml|insertadjacenthtml)\b|-moz-binding|window\.location/i;

/** What browsers and scripts leave out. */
const DROPPED = /[\0\u00ad\u200b-\u200f\ufeff]|\/\*/;

/** What in a value would run in a browser that is shown it, wherever on a page it lands: as text, in an attribute, in a script. */
export function scriptInjection(value: string): string | undefined {
  const squeezed = DROPPED.test(value) ? value.replaceAll(/[\0\u00ad\u200b-\u200f\ufeff]|\/\*[^*]{0,200}\*\//g, '') : value;
  return (
    (squeezed.includes('<') ? tags(squeezed) : undefined) ??
    (squeezed.includes('=') || squeezed.includes(':') || squeezed.includes('!') ? attributes(squeezed) : undefined) ??
    (squeezed.includes(':') ? schemes(squeezed) : undefined) ??
    (/[.[(`]/.test(squeezed) ? programs(squeezed) : undefined) ??
    disguises(value)
  );
}

/** The letters of an element with blanks between them, which a filter behind this one may take out. */
const SPREAD = new RegExp(
  String.raw`<\s*(?:${'script iframe form style object embed svg meta base applet dialog link frame math template body video audio marquee'
    .split(' ')
    .map(word => [...word].join(String.raw`\s*`))
    .join('|')})\b`,
  'i',
);

/** HTML's own rule: a tag begins with `<` and a letter, `/`, `!` or `?`; browsers of old took more between. */
function tags(value: string): string | undefined {
  for (const match of value.matchAll(/<[\s/]{0,4}([a-z!?%:][\w:.-]{0,40})([^<>]{0,1024})(>?)/gi)) {
    const [, name = '', rest = '', closed] = match;
    const element = (name.split(':').at(-1) ?? '').toLowerCase();
    // An address between angle brackets is how people write one down.
    if (/^(?:https?:|ftp:|mailto:[\w.+-]*)$/i.test(name) && /^[^\s"'`]*$/.test(rest)) continue;
    if (name.includes(':') && (ELEMENTS.has(element) || /\s/.test(rest) || rest.startsWith('/'))) return `an element ${name}`;
    if (name === '!ENTITY' || /^!(?:entity|doctype)$/i.test(name)) {
      if (/system|public|\[|%/i.test(rest)) return 'an entity of XML';
      continue;
    }
    if (/^(?:\?import|\?xml-stylesheet|import\w*$)/i.test(name)) return 'an instruction that loads';
    if (HANDLER.test(` ${rest}`) && /[\s/"'`]on[a-z]{3,}/i.test(` ${rest}`)) return 'an element with a handler';
    if (/xmlns|xlink|srcdoc|formaction|style\s*=[^>]*(?:url|expression|binding|import)/i.test(rest)) return `an element ${element}`;
    if (ELEMENTS.has(element) && !HARMLESS.has(element) && (closed !== '' || /^[\s/=]/.test(rest) || rest === ''))
      return `an element ${element}`;
    if (HARMLESS.has(element) && SCHEME.test(rest)) return `an element ${element}`;
    if (
      /^(?:img|video|audio|source|image|input)$/.test(element) &&
      /\bsrc\s*=\s*["'`]?\s*(?:x|data:|javascript|\/\/|[a-z]\s*$|["'`]\s)/i.test(rest)
    )
      return `an element ${element}`;
  }
  const spread = SPREAD.exec(value);
  return spread ? 'an element that is spread out' : undefined;
}

/** A handler that steps out of the attribute it lands in, or is one by itself. */
function attributes(value: string): string | undefined {
  for (const match of value.matchAll(/(?:^|[\s"'`/<;\0\x0b\x0c])(on[a-z]{3,50})[\s\x0b\x0c\0]*=(?!=)/gi)) {
    const name = match[1] as string;
    const after = value.slice((match.index ?? 0) + match[0].length).trimStart();
    const begins = match.index === 0 || value.slice(0, match.index).trim() === '';
    const breaks = /["'`<>/]/.test(match[0][0] ?? '') || /["'`<>]\s*$/.test(value.slice(0, match.index + 1));
    if (breaks && (KNOWN_HANDLER.test(name) || name.length > 8)) return 'a handler behind a closed attribute';
    if (KNOWN_HANDLER.test(name) && (begins || /^["'`]?\s*(?:\w[\w.$]*\s*[(`[]|javascript)/i.test(after))) return 'a handler';
    if (begins && name.length >= 10 && after === '') return 'a handler';
  }
  if (/["'`<]\s*(?:formaction|srcdoc|xlink:href|xmlns)\s*=|\b(?:formaction|xlink:href|srcdoc)\s*=\s*["'`]?/i.test(value))
    return 'an attribute that loads';
  if (
    /(?:style|x)\s*=[^=]{0,400}(?:url\s*\(\s*["']?\s*(?:javascript|vbscript|data)|expression\s*\(|behavior\s*:|-moz-binding|@import)/i.test(
      value,
    )
  )
    return 'a style that runs';
  if (/!entity\s+%?\s*\S+\s+(?:system|public)\b|\bxlink:href\b|\bxmlns\s*=|\bxsi:schemalocation\b/i.test(value)) return 'an entity of XML';
  return undefined;
}

function schemes(value: string): string | undefined {
  // A title says what it is about behind its colon; a script says what it does.
  const scheme = SCHEME.exec(value);
  const does = scheme && value.slice(scheme.index + scheme[0].length);
  if (does !== null && (/^(?:\S|\s+(?:[^a-z\s]|[a-z$_][\w$.]*[=([.`]))/i.test(does) || (scheme?.index === 0 && does.trim() === '')))
    return 'an address that is a script';
  if (
    /\bdata\s*:\s*(?:text\/html|text\/javascript|application\/(?:xhtml|xml|javascript)|image\/svg|[^,]{0,60};\s*base64\s*,\s*PHN|\s*,\s*<)/i.test(
      value,
    )
  )
    return 'an address that is a document';
  return undefined;
}

function programs(value: string): string | undefined {
  if (DOM.test(value)) return 'a program of a browser';
  if (/\)\s*\[\s*['"`]|\bself\s*\[|\(\s*(?:document|window|self|top|this)\s*\)\s*\[/i.test(value) && OBJECTS.test(value))
    return 'a program of a browser';
  if (
    /(?:^|[^\w.$]|\)\s*)(?:(?:eval|set(?:timeout|interval)(?!\(\s*(?:\(\w*\)\s*=>|function\b|(?:resolve|done|next)\b))|execscript|atob|btoa|importscripts|fromcharcode)\s*(?:\(|(?<!`[\w-]+)`)|(?:alert|prompt|confirm)(?:\(|(?<!`\w+)`|\s+\(\s*(?:['"`\d)]|[\w.$]+\s*[)(,+.[])))/i.test(
      value,
    )
  )
    return 'a call of a program in a browser';
  if (/\bnew\s+function\s*\(|\bstring\.fromcharcode\b|\bset\.constructor|\.constructor\s*[(`[]/i.test(value))
    return 'a call of a program in a browser';
  if (/(?:\[\s*\]\s*\.\s*|reflect\s*\.\s*)\w+\s*\.\s*(?:call|apply|bind)\s*[`(]|\.\s*call\s*`\s*\$/i.test(value))
    return 'a call without brackets';
  return undefined;
}

/** Scripts in other letters: brackets alone, UTF-7, letters that old pages read as angle brackets. */
function disguises(value: string): string | undefined {
  if (/\+\s*!!?\s*\[\s*\]|!\s*!?\s*\[\s*\](?!\()|\[\s*\]\s*\[\s*\(/.test(value)) return 'a script of brackets';
  if (/\+ADw-|\+AD4-/i.test(value)) return 'a script in UTF-7';
  if (/(?:\u00bc|\\xbc)\/?[a-z]{2,}[^\u00be]{0,200}(?:\u00be|\\xbe)/i.test(value)) return 'a script in another code page';
  return undefined;
}
