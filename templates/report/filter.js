(function () {
  "use strict";
  var form = document.getElementById("filter");
  if (!form) { return; }
  var text = document.getElementById("filter-text");
  var state = document.getElementById("filter-state");
  var told = document.getElementById("filter-told");
  var rows = Array.prototype.slice.call(document.querySelectorAll("[data-hosts]"));
  var facts = {};
  function names(row) { return row.getAttribute("data-hosts").split(" "); }
  rows.forEach(function (row) {
    var own = (row.getAttribute("data-facts") || "").split("|");
    if (row.tagName === "DETAILS") { names(row).forEach(function (name) { facts[name] = own; }); }
  });
  function matches(name, word) {
    var part = /^([a-z-]+)(!?)=(.+)$/.exec(word);
    var found = facts[name].some(function (fact) {
      if (!part) { return fact.indexOf(word) >= 0; }
      return fact.indexOf(part[1] + "=") === 0 && fact.indexOf(part[3], part[1].length + 1) >= 0;
    });
    return part && part[2] ? !found && facts[name].length > 1 : found || name.indexOf(word) >= 0;
  }
  function update() {
    var choices = text.value.toLowerCase().split(",").map(function (choice) {
      return choice.split(/\s+/).filter(Boolean);
    }).filter(function (choice) { return choice.length; });
    var seen = 0, all = 0;
    rows.forEach(function (row) {
      var hits = names(row).filter(function (name) {
        return !choices.length || choices.some(function (choice) {
          return choice.every(function (word) { return matches(name, word); });
        });
      });
      var shown = hits.length > 0 && (!state.value || row.getAttribute("data-state") === state.value);
      row.hidden = !shown;
      if (row.tagName === "DETAILS") { all += names(row).length; seen += shown ? hits.length : 0; }
    });
    told.textContent = seen === all ? "all " + all + " hosts" : seen + " of " + all + " hosts";
  }
  function open() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") { target.open = true; target.hidden = false; }
  }
  form.addEventListener("input", update);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.querySelectorAll("[data-pick]").forEach(function (chip) {
    chip.addEventListener("click", function () { state.value = chip.getAttribute("data-pick"); update(); });
  });
  window.addEventListener("hashchange", open);
  form.hidden = false;
  update();
  open();
})();
