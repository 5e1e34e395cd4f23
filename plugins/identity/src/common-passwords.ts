/** Beginnings and wholes that lists of leaked passwords start with, twelve characters or stretched to it. */
export const COMMON_PASSWORDS: readonly string[] = [
  'password', 'passwordpassword', 'password1234', 'password12345', 'password123456', 'passw0rd', 'p@ssword', 'p@ssw0rd',
  'administrator', 'adminadmin', 'adminadminadmin', 'changeme', 'changemechangeme', 'changeme1234', 'welcome', 'welcomewelcome', 'welcome12345',
  'letmein', 'letmeinletmein', 'letmeinplease', 'iloveyou', 'iloveyouiloveyou', 'qwertyuiop', 'qwertyuiop12', 'qwertyqwerty', 'qwerty123456', 'qwertyuiopasdf',
  '123456789012', '1234567890123', '12345678901234', '1234567890qwerty', '123456789abc', '1q2w3e4r5t6y', '1qaz2wsx3edc', 'zaq12wsxcde3', 'abcdefghijkl', 'abcdefghijklm',
  'abcd12345678', 'abc123abc123', '111111111111', '000000000000', 'aaaaaaaaaaaa', 'monkeymonkey', 'dragondragon', 'sunshinesunshine', 'footballfootball',
  'baseballbaseball', 'princessprincess', 'superman1234', 'trustno1trustno1', 'masterMaster', 'starwarsstarwars', 'platformplatform', 'correcthorsebatterystaple',
  'correct horse battery staple', 'thisisapassword', 'mypassword', 'mypassword12', 'secretsecret', 'secret123456', 'testtesttest', 'testpassword', 'guestguestguest',
  'asdfghjkl', 'asdfghjklasdf', 'zxcvbnm', 'zxcvbnmzxcvbnm', 'computercomputer', 'internetinternet', 'michaelmichael', 'jordanjordan', 'summer202', 'winter202', 'spring202', 'autumn202',
];
