// Run by npm after an install. The forge-std inside @uniswap/v4-core is older than solc 0.8.37 and draws over
// 256 warnings from it, where solc stops counting: the warnings of our own tests would never be seen. Three
// edits to the installed copy, none of which changes a byte of what it does.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..', 'node_modules', '@uniswap', 'v4-core', 'lib', 'forge-std', 'src');
for (const name of fs.readdirSync(root, { recursive: true })) {
  if (!name.endsWith('.sol')) continue;
  const file = path.join(root, name);
  const before = fs.readFileSync(file, 'utf8');
  const after = before
    .replace(/^pragma experimental ABIEncoderV2;\n/m, '') // the default since Solidity 0.8.0
    .replace(/\bstring calldata error\b/g, 'string calldata err') // to become a keyword
    .replace(/\/\/\/ @solidity memory-safe-assembly\s+assembly \{/g, 'assembly ("memory-safe") {'); // the old spelling
  if (after !== before) fs.writeFileSync(file, after);
}
