import t from 'tap'
import { readHash } from '../../../lib/hashes/foreign.ts'
import { type Described, describedToStored, toStored } from '../../../lib/hashes/formats.ts'

const PASSWORD = 'correct horse Bätterie 7'

/** Hashes of PASSWORD, unless the row says otherwise, that the named programs printed. */
const PRINTED: readonly [program: string, scheme: string, hash: string, password?: string][] = [
  ['bcrypt of Python 5.0.0', 'bcrypt', '$2a$05$8vGZvnQ8xvR00xgT9KqBFeeZnbv0uWtVLo8PYer5RsC8NhJqX6A9u'],
  ['bcrypt of Python 5.0.0', 'bcrypt', '$2b$05$RKF.JRc8mSr8QCoXqSbBLO3NJGR1AXDzOtJXqkokiP7PGBWdzu06.'],
  ['htpasswd 2.4', 'bcrypt', '$2y$05$JOfGKwIjKyRQdQqEh/LC3u8fejnScr687L2PG5/JT7ZxiRkImani6'],
  ['PHP 8.2, more than 72 bytes', 'bcrypt', '$2y$05$9rpd67n2a5nHcatQezP99u.nbou8l3DyN.YzgxJJtNGn36j.bkGaS', 'x'.repeat(80)],
  ['PHP 8.2', 'argon2', '$argon2id$v=19$m=1024,t=2,p=1$UDhhb2VXd3BEbVo1UWgzLg$9GqnMPh5EvosoP8Yg72wh9ShCMz90+C1wLTcsP0xv7o'],
  ['PHP 8.2', 'argon2', '$argon2i$v=19$m=1024,t=2,p=1$RlhFZXpRUVhhNWpzNU4vVg$hVb1+Th70ZXbKq6uqzlQk9DzU7Mgx5hJ/rAEcFzuS3Q'],
  ['argon2-cffi 25.1.0', 'argon2', '$argon2id$v=19$m=8192,t=2,p=2$2SZ8q6eQEZ6owlzsiYXoHA$ZWBHeKRsR792Y2J1j8nqECkpqNlp8OpOl1nw2WBUKdE'],
  ['argon2-cffi 25.1.0', 'argon2', '$argon2i$v=19$m=8192,t=2,p=2$D96RbP8i/d+GbJAaVfyhSA$4egZyxNySEdUm6G+wYKHnA4up0tIpAbSf29VsxayQBo'],
  ['argon2-cffi 25.1.0', 'argon2', '$argon2d$v=19$m=8192,t=2,p=2$2qMuRxZmth0wppAcry4NzQ$ABdS3q57Bng57enFe0Bw09qfv68bxt+1V+39iSY3k1M'],
  ['Django 5.2.19', 'pbkdf2', 'pbkdf2_sha256$1000$saltsalt12$tQCL+b1vBSRthu98g7ljsPivdZaTFd+1YoCXL8gtI+Q='],
  ['Django 5.2.19', 'pbkdf2', 'pbkdf2_sha1$1000$saltsalt12$AF4RPEjyWdt2SKAHutKWKRfNZYo='],
  ['Django 5.2.19', 'bcrypt-sha256-hex', 'bcrypt_sha256$$2b$05$lMV1.ggTvLpacI6uHrmJUe.0E0VVgdD6JsPIW/pPuTHiMO43KQbfK'],
  ['Django 5.2.19', 'bcrypt', 'bcrypt$$2b$05$oyqY..sDPfaIyEMfJCny4OwLCqmq7hU0HPudBT5VjBxOKDcWSy5qy'],
  ['Django 5.2.19', 'scrypt', 'scrypt$1024$saltsalt12$8$5$' +
    'WAz1+0Ir+DwYcTXISuEv5nMIHjRHmEO8CWFkCLKm9O41ibKaLV6EbSs3Fh2Z7Ei9xzPOJ4xSLEsY0PStbTb39A=='],
  ['Django 5.2.19', 'argon2', 'argon2$argon2id$v=19$m=1024,t=2,p=8$c2FsdHNhbHQxMg$YCdRwsLpVMorPJG+w7yFb4hcwO2pC2ZuK6FbrBDy2sQ'],
  ['Django 5.2.19', 'salted-md5', 'md5$saltsalt12$402481f8cfa551e34fb6b23fd70ca453'],
  ['Werkzeug 3.1.9', 'scrypt', 'scrypt:1024:8:1$1CKXLoLDHSB1i9TS$' +
    '1517c6d8b169cb1bfe2b13fbffe5fa203c1212e45ce1f28998d1b62e2f63c39bb9803c0239d88a35a25c61726c45e545cbec67b16b77643d423268e4e96191a6'],
  ['Werkzeug 3.1.9', 'pbkdf2', 'pbkdf2:sha256:1000$xZccz8lJLzgTAZRI$33e27d90e076b5d455db59395580db97b8a5a963b2cf3041b1e52a2f965edc95'],
  ['Werkzeug 3.1.9', 'pbkdf2', 'pbkdf2:sha512:1000$znr1ZUPeefUYJ6vj$' +
    '47323db0a68f3c3d6992970088dca45e246a03e25f98d39cb5185a12933c7497751bb20a6ae201dd4f3d2f607b932a2d650d33d7a0bfea428c41263d00d28493'],
  ['passlib 1.7.4', 'scrypt', '$scrypt$ln=10,r=8,p=1$rtWaU8o5RygFQAihtLa2dg$INrNLCmIEXFFVYzvsDzJDgf5eu6Xl+TUvLSZBsCK038'],
  ['passlib 1.7.4', 'pbkdf2', '$pbkdf2$1000$9N4bY8yZs1aK8X5vTQnhXA$RaLFE/3nUfZ7TmXEYEyaEbzkatU'],
  ['passlib 1.7.4', 'pbkdf2', '$pbkdf2-sha256$1000$IyQEoJQSgvB.T6nVei9ljA$AaXUFaFT3Hva9pubTt5GVd1L4FSVlS4ocvRPkIHsyjE'],
  ['passlib 1.7.4', 'pbkdf2', '$pbkdf2-sha512$1000$/t8bY0zpnfMeg9D635sTwg$' +
    'GArenRWliAbJ1.gemnGRrJ9wkSBWU.vO3zr50lLBfPEiICWVQDfzW2dBiVk.OvPZ1pCA9ati5ZwmaqyPicP.Ng'],
  ['passlib 1.7.4', 'phpass', '$P$6SwrsTnCmrBQCLEqToAgo4/fM2QQfO/'],
  ['passlib 1.7.4 by default', 'phpass', '$P$HKyJzDl/OetsHbo1TTUG1paZ88AMsa1'],
  ['passlib 1.7.4', 'ssha', '{SSHA}n8Ot0beVPe1T/z11BpeYsvBBd/8+h9Ba'],
  ['passlib 1.7.4', 'ssha256', '{SSHA256}oEHE6puhBqRaHj+/HGZPAMPvXDSYNNhGiApfBNkam7X+f28t5RxDiA=='],
  ['passlib 1.7.4', 'ssha512', '{SSHA512}7RRU0KFvgdDilKpoAvg/0Quf3rbH306ZK2gcv1DMmYKTClPR1DQLBv3e7zh5g1PMzo7zcAt8I3acCnLJ/xmhW1NqrbV2LgXA'],
  ['slappasswd 2.5', 'ssha', '{SSHA}jiodV+ssar3cHrWwWfLZUiUZ56LDi4ap'],
  ['slappasswd 2.5', 'salted-md5', '{SMD5}XpCne4xeGt6S4PtlwfStGqc0GOM='],
  ['the published test of phpass', 'phpass', '$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0', 'test12345'],
  ['the documented steps of WordPress 6.8, by PHP 8.2', 'wordpress', '$wp$2y$05$GKOVy1/Py7g2Sfisf1gwoee8o8AT3PiT2cQ7PYiC1eISlwFB5znr2']
]

const DESCRIBED: readonly [program: string, scheme: string, hash: Described, password?: string][] = [
  ['better-auth 1.7.25', 'scrypt-nfkc', {
    scheme: 'better-auth',
    hash: 'ddddd0321ffb6633b929fac5109dc1ce:' +
      '7999f4d6368e3b546543ffc7f6b8c7ed193d852a5c0fc4cf9a90ce04c8262ce37ef19a611210a1c761611dba7257e4aaf3c1db298b81a8a7fc3ddbb6440deb92'
  }],
  ['better-auth 1.7.25, another form of the same characters', 'scrypt-nfkc', {
    scheme: 'better-auth',
    hash: 'ddddd0321ffb6633b929fac5109dc1ce:' +
      '7999f4d6368e3b546543ffc7f6b8c7ed193d852a5c0fc4cf9a90ce04c8262ce37ef19a611210a1c761611dba7257e4aaf3c1db298b81a8a7fc3ddbb6440deb92'
  }, PASSWORD.normalize('NFD')],
  ['the published example of Firebase', 'firescrypt', {
    scheme: 'firebase',
    rounds: 8,
    memory_cost: 14,
    salt: '42xEC+ixf3L2lw==',
    hash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
    salt_separator: 'Bw==',
    signer_key: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=='
  }, 'user1password'],
  ['a test of ASP.NET Core Identity, version 2', 'pbkdf2', {
    scheme: 'aspnet', hash: 'AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg=='
  }, 'my password'],
  ['a test of ASP.NET Core Identity, version 3', 'pbkdf2', {
    scheme: 'aspnet', hash: 'AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg+yWU7rLgUwPZb1Itsmra7cbxw2EFpwpVFIEtP+JIuUEw=='
  }, 'my password'],
  // The hashes of the first table, taken apart.
  ['passlib 1.7.4', 'pbkdf2', {
    scheme: 'pbkdf2', digest: 'sha1', iterations: 1_000, salt: '9N4bY8yZs1aK8X5vTQnhXA', hash: 'RaLFE/3nUfZ7TmXEYEyaEbzkatU'
  }],
  ['passlib 1.7.4', 'scrypt', {
    scheme: 'scrypt', N: 1_024, r: 8, p: 1, salt: 'rtWaU8o5RygFQAihtLa2dg', hash: 'INrNLCmIEXFFVYzvsDzJDgf5eu6Xl-TUvLSZBsCK038='
  }],
  ['argon2-cffi 25.1.0', 'argon2', {
    scheme: 'argon2id',
    memory: 8_192,
    passes: 2,
    parallelism: 2,
    salt: '2SZ8q6eQEZ6owlzsiYXoHA',
    hash: 'ZWBHeKRsR792Y2J1j8nqECkpqNlp8OpOl1nw2WBUKdE'
  }],
  ['Django 5.2.19', 'salted-md5', { scheme: 'md5', order: 'before', salt: 'saltsalt12', hash: '402481f8cfa551e34fb6b23fd70ca453' }]
]

const ROWS = [
  ...PRINTED.map(([program, scheme, hash, password]) => ({ program, scheme, stored: () => toStored(hash), password })),
  ...DESCRIBED.map(([program, scheme, hash, password]) => ({ program, scheme, stored: () => describedToStored(hash), password }))
]

for (const { program, scheme, stored, password = PASSWORD } of ROWS) {
  t.test(`a password matches the ${scheme} hash of ${program}, and no other does`, async (t) => {
    const hash = readHash(stored())
    t.match(stored(), /^\$/, 'the stored form begins with the sign of other schemes')
    t.equal(hash.scheme, scheme)
    t.equal(hash.weak, /^salted-(md5|sha1)$/.test(scheme))
    t.ok(hash.work > 0 && hash.work <= 2_000)
    t.equal(await hash.verify(password), true)
    for (const other of [password.replace(/^./, 'X'), '', ` ${password}x`]) t.equal(await hash.verify(other), false)
  })
}

t.test('a hash that would take too long, too much memory or match too much is refused with its reason', async (t) => {
  const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64').replace(/=+$/, '')
  const rows: [hash: string, reason: RegExp][] = [
    [`$pbkdf2-sha512$50000000$${zeros(16)}$${zeros(64)}`, /would take about [\d.]+ s; the limit is 2 s/],
    [`$pbkdf2-sha256$0$${zeros(16)}$${zeros(32)}`, /iterations must be at least 1/],
    [`$pbkdf2-sha256$1000$${zeros(16)}$AA`, /digest has 1 bytes/],
    ['$pbkdf2-sha256$1000$AA$', /scheme is unknown/],
    [`$pbkdf2-sha256$1000$${zeros(256)}$${zeros(32)}`, /salt is longer than 128 bytes/],
    [`$pbkdf2-sha256$1000$AAA.B=A$${zeros(32)}`, /salt is not valid base64/],
    [`$argon2id$v=19$m=4194304,t=1,p=1$${zeros(16)}$${zeros(32)}`, /m is above/],
    [`$argon2id$v=19$m=262144,t=16,p=1$${zeros(16)}$${zeros(32)}`, /would take/],
    [`$argon2id$v=19$m=1024,t=1,p=64$${zeros(16)}$${zeros(32)}`, /p must be 1 to 8/],
    [`$argon2id$v=16$m=1024,t=1,p=1$${zeros(16)}$${zeros(32)}`, /scheme is unknown/],
    [`$argon2id$v=19$m=4,t=1,p=1$${zeros(16)}$${zeros(32)}`, /m at least 8 times p/],
    [`$argon2id$v=19$m=64,t=1,p=1$${zeros(4)}$${zeros(32)}`, /shorter than 8 bytes/],
    [`$scrypt$ln=20,r=8,p=1$${zeros(16)}$${zeros(32)}`, /1024 MiB of memory/],
    [`$scrypt$ln=15,r=8,p=512$${zeros(16)}$${zeros(32)}`, /would take/],
    [`$scrypt$ln=0,r=8,p=1$${zeros(16)}$${zeros(32)}`, /at least 1/],
    ['$2b$16$8vGZvnQ8xvR00xgT9KqBFeeZnbv0uWtVLo8PYer5RsC8NhJqX6A9u', /would take/],
    ['$2x$05$8vGZvnQ8xvR00xgT9KqBFeeZnbv0uWtVLo8PYer5RsC8NhJqX6A9u', /scheme is unknown/],
    ['$2b$03$8vGZvnQ8xvR00xgT9KqBFeeZnbv0uWtVLo8PYer5RsC8NhJqX6A9u', /cost must be at least 4/],
    ['$wp$2y$00$GKOVy1/Py7g2Sfisf1gwoee8o8AT3PiT2cQ7PYiC1eISlwFB5znr2', /cost must be at least 4/],
    [`$scrypt$ln=16,r=1,p=1$${zeros(16)}$${zeros(32)}`, /ln must be below 16/],
    [`$argon2id$v=19$m=60,t=9999,p=4$${zeros(16)}$${zeros(32)}`, /would take/],
    ['$P$IKyJzDl/OetsHbo1TTUG1paZ88AMsa1', /must be 128 to 524288/],
    ['$P$.KyJzDl/OetsHbo1TTUG1paZ88AMsa1', /must be 128 to 524288/],
    [`$ssha$after$AAAA$${zeros(16)}`, /must have 20 bytes/],
    ['$6$rounds=5000$salt$hash', /scheme is unknown/],
    [`$${'x'.repeat(1_024)}`, /longer than 1024/]
  ]
  for (const [hash, reason] of rows) t.throws(() => readHash(toStored(hash)), { message: reason }, hash.slice(0, 40))
  for (const [text, reason] of [
    ['', /format is unknown/], ['hunter2', /format is unknown/], ['{SSHA}AAAA', /salt is missing/], ['{SHA}AAAA', /format is unknown/],
    ['scrypt:1000:8:1$a$00', /not a power of two/], ['md5$salt$xyz', /not hexadecimal/], ['x'.repeat(1_025), /longer than 1024/]
  ] as const) t.throws(() => toStored(text), { message: reason }, text.slice(0, 20))
  for (const hash of ['AA==', 'AgAA', 'AQAAAAEAACcQAAAAEAAB']) {
    t.throws(() => describedToStored({ scheme: 'aspnet', hash }), { message: /ASP\.NET|digest is missing/ })
  }
  t.throws(() => describedToStored({ scheme: 'better-auth', hash: 'abc' }), { message: /colon/ })
})

t.test('no reason names a part of the hash', async (t) => {
  for (const hash of ['secretsecret', '$secret$secret', '{SSHA}c2VjcmV0', 'md5$secret$secret']) {
    try {
      readHash(toStored(hash))
      t.fail('it was accepted')
    } catch (error) {
      t.notMatch((error as Error).message, /secret|c2Vj/)
    }
  }
})

t.test('each hash that is accepted can be verified', async (t) => {
  const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64').replace(/=+$/, '')
  for (const hash of [
    '$2b$04$8vGZvnQ8xvR00xgT9KqBFeeZnbv0uWtVLo8PYer5RsC8NhJqX6A9u',
    `$scrypt$ln=15,r=1,p=1$${zeros(16)}$${zeros(32)}`,
    `$scrypt$ln=1,r=1,p=9999$${zeros(16)}$${zeros(32)}`,
    `$firescrypt$ln=1,r=1,p=1$${zeros(16)}$${zeros(64)}$${zeros(1)}$${zeros(64)}`,
    `$argon2id$v=19$m=64,t=1,p=8$${zeros(8)}$${zeros(16)}`,
    `$pbkdf2-sha512$1$$${zeros(128)}`
  ]) t.equal(await readHash(hash).verify(PASSWORD), false, hash.slice(0, 24))
})
