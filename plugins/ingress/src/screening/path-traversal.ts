/** `..` with a separator of some kind on a side, in whatever letters a server may read it. */
const CLIMB =
  /(?:^|[\\/\u2215\u2216;,=&?\s"'[(])(?:\.\.(?:[\\/\u2215\u2216]|;[\\/.])|\.{3}[\\/]\.{2})|[\\/]\.\.(?:[\\/;\0]|$)|[\\/]\.{3}[\\/]\.{2}/;
/** A link of Markdown and an import of a program, which a reader follows and no server opens. */
const REFERENCE = /(?:\]\(|\b(?:from|import|require)\s*\(?\s*['"])\.{1,2}\/[\w@./#-]*(?=['")])/g;
const TEXTUAL = /0x(?:2e|5c|2f)[^\w]?(?:0x|\.|%00|\/|\\)/i;
/** Files that no client has business with, wherever they lie. */
const SYSTEM =
  /(?:^|[\\/\s=:"'(])(?:etc[\\/](?:passwd|shadow|group|hosts|sudoers|issue|fstab|crontab|sub[ug]id|master\.passwd|ssh|httpd|apache2?|nginx|mysql|php|security|motd|environment|profile|init\.d|pam\.d|cron\.\w+|ssl|ldap|samba|network|redhat-release|os-release)|proc[\\/](?:self|\d+|version|cmdline|cpuinfo|meminfo|mounts|net|sys|environ|interrupts|filesystems|modules|partitions|sched\w*|stat|swaps|uptime|vmstat|kcore|keys|kallsyms|loadavg|locks|devices)|sys[\\/](?:class|kernel|devices|fs|module|block|bus|firmware|power|hypervisor)|dev[\\/](?:tcp|udp|null|mem|sd[a-z]|shm|random)|var[\\/](?:log|www|lib|mail|spool|run)[\\/]|usr[\\/]local[\\/](?:etc|apache)|root[\\/]\.|boot\.ini|win(?:dows|nt)?[\\/](?:win\.ini|system32|system\.ini|repair)|win\.ini|inetpub[\\/]|(?:web|meta)-inf[\\/])/i;
/** Files and folders of programs, keys and repositories: dotted names that hold secrets. */
const DOTTED =
  /(?:^|[\\/\s=:"'@])\.(?:htaccess|htpasswd|htdigest|git(?:config|ignore|attributes|modules|-credentials)?|svn|hg|bzr|env(?:\.\w+)?|ssh|aws|azure|kube|docker\w*|gnupg|npmrc|yarnrc|pypirc|netrc|pgpass|my\.cnf|mysql_history|psql_history|bash_\w+|bashrc|zsh\w*|zhistory|sh_history|history|profile|viminfo|vimrc|cshrc|ksh\w*|lesshst|rhosts|forward|config[\\/](?:gcloud|gh)|subversion|composer|terraform\w*|vault-token|boto|s3cfg|dockercfg|wget\w*|python_history|node_repl_history|rediscli_history|irb-history|nano_history|ds_store|idea|vscode|travis\.yml|gitlab-ci\.yml|circleci|drone\.yml|jenkins\w*|cursor\w*|aider\w*|claude\w*|codeium\w*|continue|copilot\w*|windsurf\w*|roo\w*|cline\w*|zed|kiro|junie|rovodev|opencode|plandex|n8n|gemini|amazonq|trae|qodo|tabnine\w*|mcp(?:\.json)?|augment\w*|goose\w*|codex|devin|bolt|lovable|sourcegraph|supermaven|void|llm\w*|crush|openhands|specstory|taskmaster|ai|agents?)(?=[\\/.\s"'?:;,)]|$)/i;
const BACKUPS =
  /(?:^|[\\/])(?:wp-config|configuration|config|settings|database|db|dump|backup|localsettings|web|phpinfo|local\.xml|credentials|secrets?|id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|known_hosts|debug|errors?|access|laravel)(?:[.-]\w+)*\.(?:php\.?(?:bak|old|save|swp|orig|txt|~)|bak|old|sql(?:\.(?:gz|zip|tar|bz2))?|swp|orig|save|log|tar\.gz|key|pem|config)\b|[\\/](?:id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|wp-config\.php|web\.config|composer\.(?:lock|json)|package-lock\.json|yarn\.lock|dockerfile|docker-compose\.ya?ml|node_modules[\\/]\.|\w+\.sql(?:\.(?:gz|zip))?)(?:$|[?\s])/i;

/**
 * A way out of the folder that was meant, or the name of a file that no client is to have. `isPath` where the text is the path of the
 * request itself.
 */
export function pathTraversal(value: string, isPath = false): string | undefined {
  if (!isPath && !/[\\/.]|0x/.test(value)) return undefined;
  if (isPath) {
    if (
      value
        .split(/[\\/]/)
        .slice(0, -1)
        .some(segment => /^\.{2,3};?$/.test(segment)) ||
      /[\\/]\.\.[\\/]|\0|%00/.test(value)
    )
      return 'a way out of its folder';
  } else if (CLIMB.test(value.replaceAll(REFERENCE, ' '))) return 'a way out of its folder';
  if (TEXTUAL.test(value)) return 'a way out of its folder, in numbers';
  if (SYSTEM.test(value)) return 'the name of a file of the system';
  if (DOTTED.test(value)) return 'the name of a file of secrets';
  if (isPath && /(?:^|[\\/])\.(?!well-known(?:[\\/]|$))[a-z0-9]|^\/@(?:fs|id)\/(?:\.|__x00__|[a-z]:|etc|root|proc)/i.test(value))
    return 'the name of a file of secrets';
  if (/>\s*\/(?:tmp|var|dev|etc)\/\w/i.test(value)) return 'the name of a file of the system';
  return (isPath || /^[\w.-]+$/.test(value)) && BACKUPS.test(isPath ? value : `/${value}`) ? 'the name of a file of secrets' : undefined;
}
