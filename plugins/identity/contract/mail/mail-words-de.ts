import type { MailWords } from './mail-words-en.ts';

const NOT_YOU = 'Wenn Sie das nicht waren, setzen Sie Ihr Passwort zurück:\n{reset}\nund sagen Sie es der Administration.';

export const de: MailWords = {
  confirm_address: {
    subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
    text: 'Bestätigen Sie, dass diese E-Mail-Adresse Ihre ist:\n{link}\n\nDer Link gilt einmal, 24 Stunden lang. Wenn Sie kein Konto angelegt haben, tun Sie nichts.',
  },
  already_there: {
    subject: 'Sie haben schon ein Konto',
    text: 'Jemand, wahrscheinlich Sie, wollte mit dieser E-Mail-Adresse ein Konto anlegen. Sie haben schon eines.\n\nAnmelden:\n{link}\n\nWenn Sie das Passwort vergessen haben:\n{reset}\n\nWenn Sie es nicht waren, tun Sie nichts.',
  },
  asked_twice: {
    subject: 'Wählen Sie ein Passwort für Ihr Konto',
    text: 'Jemand wollte mit dieser E-Mail-Adresse mehr als einmal ein Konto anlegen, und das waren vielleicht nicht jedes Mal Sie. Keines der Passwörter von damals gilt. Wenn Sie das Konto möchten, wählen Sie Ihres:\n{link}\n\nDer Link gilt einmal, 30 Minuten lang. Danach fordern Sie einen neuen an:\n{reset}\n\nWenn Sie es nicht waren, tun Sie nichts.',
  },
  reset_password: {
    subject: 'Setzen Sie Ihr Passwort zurück',
    text: 'Wählen Sie ein neues Passwort:\n{link}\n\nDer Link gilt einmal, 30 Minuten lang. Wenn Sie nicht darum gebeten haben, tun Sie nichts: Ihr Passwort bleibt, wie es ist.',
  },
  welcome: {
    subject: 'Wählen Sie ein Passwort für Ihr Konto',
    text: 'Für Sie wurde ein Konto angelegt. Wählen Sie ein Passwort für die Anmeldung:\n{link}\n\nDer Link gilt einmal, 30 Minuten lang. Danach fordern Sie einen neuen an:\n{reset}',
  },
  ciba: {
    subject: 'Jemand möchte für Sie handeln',
    text: '{name} möchte für Sie handeln. Sehen Sie nach, worum es geht, und entscheiden Sie:\n{link}\n\nDie Anfrage endet nach einigen Minuten von selbst. Wenn Sie sie nicht erwarten, lehnen Sie ab oder tun Sie nichts.',
  },
  recovery_confirm: {
    subject: 'Stellen Sie Ihr Konto wieder her',
    text: 'Jemand, wahrscheinlich Sie, möchte Ihr Konto wiederherstellen. Bestätigen Sie, dass Sie es sind:\n{link}\n\nDer Link gilt einmal, 30 Minuten lang. Wenn Sie es nicht waren, tun Sie nichts, oder beenden Sie es sofort:\n{cancel}',
  },
  recovery_under_way: {
    subject: 'Ihr Konto wird schon wiederhergestellt',
    text: 'Jemand, wahrscheinlich Sie, möchte Ihr Konto wiederherstellen. Das läuft schon. Sie bekommen eine Mail, wenn es weitergeht.\n\nWenn Sie es nicht wollen, beenden Sie es:\n{cancel}',
  },
  recovery_waiting: {
    subject: 'Ihr Konto wird wiederhergestellt',
    text: 'Die Wiederherstellung Ihres Kontos wurde bestätigt. Ab {time} können Sie ein neues Passwort wählen; dann bekommen Sie eine Mail mit dem Link. Ihre Authenticator-App, Ihre Wiederherstellungscodes und Ihre Passkeys werden damit entfernt.\n\nWenn Sie es nicht waren, beenden Sie es jetzt. Auch eine gewöhnliche Anmeldung beendet es:\n{cancel}',
  },
  recovery_judged: {
    subject: 'Ihr Konto wird wiederhergestellt',
    text: 'Die Wiederherstellung Ihres Kontos wurde bestätigt. Die Administration entscheidet darüber. Wenn sie zustimmt, bekommen Sie eine Mail mit dem Link für ein neues Passwort. Ihre Authenticator-App, Ihre Wiederherstellungscodes und Ihre Passkeys werden damit entfernt.\n\nWenn Sie es nicht waren, beenden Sie es jetzt. Auch eine gewöhnliche Anmeldung beendet es:\n{cancel}',
  },
  recovery_wait_judged: {
    subject: 'Ihr Konto wird wiederhergestellt',
    text: 'Die Wiederherstellung Ihres Kontos wurde bestätigt. Die Administration entscheidet darüber. Wenn sie zustimmt, bekommen Sie, nicht vor {time}, eine Mail mit dem Link für ein neues Passwort. Ihre Authenticator-App, Ihre Wiederherstellungscodes und Ihre Passkeys werden damit entfernt.\n\nWenn Sie es nicht waren, beenden Sie es jetzt. Auch eine gewöhnliche Anmeldung beendet es:\n{cancel}',
  },
  recovery_approved: {
    subject: 'Die Wiederherstellung Ihres Kontos wurde genehmigt',
    text: 'Die Administration hat die Wiederherstellung Ihres Kontos genehmigt. Ab {time} können Sie ein neues Passwort wählen; dann bekommen Sie eine Mail mit dem Link.\n\nWenn Sie es nicht waren, beenden Sie es jetzt:\n{cancel}',
  },
  recovery_offered: {
    subject: 'Wählen Sie ein neues Passwort für Ihr Konto',
    text: 'Sie können die Wiederherstellung Ihres Kontos abschließen. Wählen Sie ein neues Passwort:\n{link}\n\nDer Link gilt einmal, bis {time}. Ihre Authenticator-App, Ihre Wiederherstellungscodes und Ihre Passkeys werden entfernt, und jedes Gerät wird abgemeldet.\n\nWenn Sie es nicht waren, beenden Sie es jetzt:\n{cancel}',
  },
  recovery_refused: {
    subject: 'Die Wiederherstellung Ihres Kontos wurde abgelehnt',
    text: 'Die Administration hat die Wiederherstellung Ihres Kontos abgelehnt. Nichts wurde geändert. Wenn Sie es waren, sprechen Sie mit der Administration.',
  },
  recovery_cancelled: {
    subject: 'Die Wiederherstellung Ihres Kontos wurde beendet',
    text: 'Die Wiederherstellung Ihres Kontos wurde vor dem Abschluss beendet. Nichts wurde geändert. Wenn Sie sie noch brauchen, beantragen Sie sie neu:\n{link}',
  },
  recovery_expired: {
    subject: 'Die Wiederherstellung Ihres Kontos ist abgelaufen',
    text: 'Die Wiederherstellung Ihres Kontos wurde nicht rechtzeitig abgeschlossen. Nichts wurde geändert. Wenn Sie sie noch brauchen, beantragen Sie sie neu:\n{link}',
  },
  recovery_completed: {
    subject: 'Ihr Konto wurde wiederhergestellt',
    text: `Ihr Konto hat ein neues Passwort. Die Authenticator-App, die Wiederherstellungscodes und die Passkeys wurden entfernt, und jedes Gerät wurde abgemeldet. Melden Sie sich an, und richten Sie wieder einen zweiten Faktor ein.\n\n${NOT_YOU}`,
  },
  password_changed: {
    subject: 'Ihr Passwort wurde geändert',
    text: `Das Passwort Ihres Kontos wurde geändert, und jedes andere Gerät wurde abgemeldet.\n\n${NOT_YOU}`,
  },
  new_sign_in: {
    subject: 'Anmeldung mit einem neuen Gerät',
    text: `Jemand hat sich an Ihrem Konto mit einem Gerät angemeldet, mit dem es in den letzten 90 Tagen nicht benutzt wurde.\n\nGerät: {device}\nZeit: {time}\n\nWenn Sie das waren, tun Sie nichts. Hier sehen Sie alle Geräte Ihres Kontos und können jedes abmelden:\n{link}\n\n${NOT_YOU}`,
  },
  mfa_enrolled: {
    subject: 'Eine Authenticator-App wurde hinzugefügt',
    text: `Die Anmeldung an Ihrem Konto fragt jetzt nach einem Code Ihrer Authenticator-App.\n\n${NOT_YOU}`,
  },
  mfa_removed: {
    subject: 'Die Authenticator-App wurde entfernt',
    text: `Die Anmeldung an Ihrem Konto fragt nicht mehr nach einem Code.\n\n${NOT_YOU}`,
  },
  recovery_code_used: {
    subject: 'Ein Wiederherstellungscode wurde benutzt',
    text: `Jemand hat sich mit einem Wiederherstellungscode an Ihrem Konto angemeldet. Er gilt nicht mehr.\n\n${NOT_YOU}`,
  },
  recovery_codes_renewed: {
    subject: 'Neue Wiederherstellungscodes wurden erstellt',
    text: `Ihr Konto hat neue Wiederherstellungscodes. Die alten gelten nicht mehr.\n\n${NOT_YOU}`,
  },
  wallet_linked: {
    subject: 'Eine Wallet wurde mit Ihrem Konto verknüpft',
    text: `Wer diese Wallet hat, kann sich jetzt an Ihrem Konto anmelden.\n\n${NOT_YOU}`,
  },
  wallet_unlinked: {
    subject: 'Eine Wallet wurde von Ihrem Konto entfernt',
    text: `Mit der Wallet kann sich niemand mehr an Ihrem Konto anmelden.\n\n${NOT_YOU}`,
  },
  passkey_added: {
    subject: 'Ein Passkey wurde hinzugefügt',
    text: `Mit einem neuen Passkey kann man sich ohne Passwort an Ihrem Konto anmelden.\n\n${NOT_YOU}`,
  },
  passkey_removed: {
    subject: 'Ein Passkey wurde entfernt',
    text: `Einer der Passkeys Ihres Kontos wird nicht mehr angenommen.\n\n${NOT_YOU}`,
  },
  passkey_suspended: {
    subject: 'Ein Passkey wurde gestoppt',
    text: `Eine Kopie eines Ihrer Passkeys wurde benutzt. Er wird nicht mehr angenommen: Entfernen Sie ihn, und fügen Sie einen anderen hinzu.\n\n${NOT_YOU}`,
  },
};
